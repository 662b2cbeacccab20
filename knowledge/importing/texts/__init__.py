"""What is said of a person's file while it is read, one TOML file a language, same keys in each."""
