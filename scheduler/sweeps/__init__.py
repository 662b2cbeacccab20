"""Sweeps: the contacts that they check, those that they answer, and the order."""
