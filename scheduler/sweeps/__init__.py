"""Sweeps: who is looked at, who of them is answered, and in which order."""
