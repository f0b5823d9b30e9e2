"""What other checkers let pass: their rules and inputs, and planted defects to judge."""
