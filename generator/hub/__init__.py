"""Bring a dataset to the Hub and back: what is pushed and pulled, and its card."""
