"""Decides by code, from all of the customer's own words, whether a record answers them."""
