"""Running references once, confined, to see what they return."""
