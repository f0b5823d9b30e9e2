"""Compose the dataset's definitions into models and compare them with transformers."""
