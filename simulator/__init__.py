"""Strict stand-ins for the outside world: tools and tests use them, the product never imports them."""
