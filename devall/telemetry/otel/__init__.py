"""Traces and metrics by OpenTelemetry: what its environment variables ask for, and the sink."""
