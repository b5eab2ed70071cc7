"""Fakes for tests of workflows, shipped with the package."""
