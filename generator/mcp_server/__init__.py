"""A server for agents on the Model Context Protocol: definitions, verdicts, failures."""
