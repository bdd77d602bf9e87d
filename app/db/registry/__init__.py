"""The instance-wide bucket: readable without any member's key. Never content."""
