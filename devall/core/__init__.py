"""The vocabulary of a run; imports nothing of ours."""
