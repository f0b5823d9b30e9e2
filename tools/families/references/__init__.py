"""The references of the families: the files here are the text of `run()`."""
