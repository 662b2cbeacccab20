"""Texts about a person's file while it is read: one TOML file per language, with the same keys."""
