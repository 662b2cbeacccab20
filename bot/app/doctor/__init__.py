"""`phonedesk doctor`: the obstacles to a run, and how to remove them."""
