"""What users add: functions found in folders, and the registry of parts."""
