"""`phonedesk init`: asks for everything that a desk needs, and writes it to ``.env``."""
