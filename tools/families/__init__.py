"""The families of definitions: one module a family, each with a table of its own."""
