"""Scenarios run through the whole product: what must come out of each stands in its file."""
