"""Annotations (labels by people about items), and the sources they are read from."""
