"""From text to config, with exact positions."""
