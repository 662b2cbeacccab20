"""The texts for the choosing model, in both languages, with the same keys in each file."""
