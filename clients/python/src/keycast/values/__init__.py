"""Values: the latest of each key."""
