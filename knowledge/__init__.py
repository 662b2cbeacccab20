"""Finds answers: the knowledge providers and the embedded store."""
