"""Brings a customer's words into forms that code can compare."""
