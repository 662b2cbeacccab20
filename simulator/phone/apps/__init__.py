"""The apps of the virtual phone. A new one is one file here and one line in ``phone.py``."""
