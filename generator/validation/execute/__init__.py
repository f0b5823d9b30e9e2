"""Call each reference once, confined, and check what it returns."""
