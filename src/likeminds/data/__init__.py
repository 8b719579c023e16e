"""Annotations (labels of items by users), and the sources they are read from."""
