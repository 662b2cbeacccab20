"""Turns a run's pictures into a moving picture, an album or a sheet. Pure functions over Pillow."""
