"""One graph's run; knows no agent."""
