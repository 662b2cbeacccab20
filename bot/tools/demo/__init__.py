"""The demo: the product as it is, on simulators that speak the real protocols. Only addresses differ."""
