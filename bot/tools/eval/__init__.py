"""Runs scenarios through the whole product: each file states the expected result."""
