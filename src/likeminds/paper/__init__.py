"""The paper: its theorems as functions, and its experiments, rebuilt."""
