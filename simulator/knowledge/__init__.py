"""Stand-ins for knowledge services over HTTP."""
