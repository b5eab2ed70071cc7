"""The rules of rules.py, by what they look at."""
