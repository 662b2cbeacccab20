"""A model that needs no model: a server that answers by rules, for the demo and for trying things out."""
