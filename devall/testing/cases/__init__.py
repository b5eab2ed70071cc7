"""Tests of workflows: a task, a recording or scripted replies, and what has to come of it."""
