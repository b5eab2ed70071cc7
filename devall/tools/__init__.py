"""What agents call."""
