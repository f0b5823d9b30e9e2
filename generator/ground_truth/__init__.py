"""Where a definition's ground truth may come from, and whether it can here."""
