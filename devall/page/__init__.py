"""One run as one HTML file, which needs no network and no other file."""
