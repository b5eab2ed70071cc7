"""What happens on an edge: conditions and transforms."""
