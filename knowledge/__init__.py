"""What is answered: the knowledge providers and the embedded store."""
