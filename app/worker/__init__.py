"""The loops that run beside requests. Never HTTP."""
