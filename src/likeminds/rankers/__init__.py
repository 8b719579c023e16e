"""The rankers: estimators that learn one ranking function per user."""
