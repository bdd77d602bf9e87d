"""The loops that run beside requests, and what they send. Never a route."""
