"""Questions and answers from a person's file: read, planned as a dry run, carried out."""
