"""Measures the product on this machine with virtual phones."""
