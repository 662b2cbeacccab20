"""Strict stand-ins for what is outside: tools and tests use them, the product never imports them."""
