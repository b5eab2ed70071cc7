"""What a workflow file may say, as frozen models."""
