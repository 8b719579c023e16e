"""The operations of the API, by what they are about."""
