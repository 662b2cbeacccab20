"""The demo: the product as it is, on stand-ins that speak the real protocols. Only addresses differ."""
