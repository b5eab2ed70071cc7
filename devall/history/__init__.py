"""What runs were like, read from their journals and events: their course, why, and how two differ."""
