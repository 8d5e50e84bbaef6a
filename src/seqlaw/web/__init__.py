"""The explorer: one page, one JSON API, and worker processes that answer it."""
