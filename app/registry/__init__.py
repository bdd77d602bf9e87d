"""Services on the registry bucket, one noun a module. Never a commit, never an owner table."""
