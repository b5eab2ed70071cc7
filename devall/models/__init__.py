"""Chat models and the wire they speak."""
