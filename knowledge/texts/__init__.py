"""What the text model that chooses is told, in both languages. Same keys in each file."""
