"""Who said what about which item: annotations, and where they come from."""
