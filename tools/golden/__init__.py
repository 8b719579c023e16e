"""Fits that are frozen: small seeded crowds, and what the library learns of them."""
