"""Runs scenarios through the whole product: each file says what must come out."""
