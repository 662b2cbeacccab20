"""Shows a recorded run again: as a film, as a page, or to another model."""
