"""The operations of the API, by topic."""
