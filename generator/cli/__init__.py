"""The commands: thin layers over the library that read options and print."""
