"""The program that runs on phones to paste a text, with its source (``Paste.smali``)."""
