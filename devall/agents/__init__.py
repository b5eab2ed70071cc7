"""One agent's run; knows no graph."""
