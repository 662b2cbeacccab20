"""Sweeps: whom they check, whom of these they answer, and in which order."""
