"""A run's pictures as something to look at again: a moving picture, an album or a sheet. Pure functions over Pillow."""
