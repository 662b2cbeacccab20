"""`phonedesk doctor`: what stands in the way of a run, and what to do about it."""
