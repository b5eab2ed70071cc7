"""From config to an immutable plan."""
