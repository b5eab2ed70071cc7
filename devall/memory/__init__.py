"""The stores that agents remember in."""
