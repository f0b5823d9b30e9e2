"""Other projects' checkers against planted defects: their rules and inputs."""
