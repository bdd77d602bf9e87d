"""Services on the owner bucket, one noun a module. Never a commit, never the registry."""
