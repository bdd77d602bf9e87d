"""Events and who is told of them: by page, by stream, by webhook."""
