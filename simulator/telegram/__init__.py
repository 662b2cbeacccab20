"""Stand-ins for a Bot API server."""
