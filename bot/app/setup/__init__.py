"""`phonedesk init`: asks what a desk needs, and writes it to ``.env``."""
