"""What a run will do and at most cost, from its file alone."""
