"""The code of each kind of node; the only bridge from the engine to agents."""
