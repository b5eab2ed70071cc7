"""What has been done, step by step."""
