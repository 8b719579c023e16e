"""What a search asks of a ranker: its candidates, and how they are fitted to a fold."""
