"""Stand-ins for a model's server."""
