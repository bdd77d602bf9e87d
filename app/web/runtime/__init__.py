"""Routes on the service itself: health and readiness."""
