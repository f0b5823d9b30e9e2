"""Parity: the dataset's definitions composed into models, and held against transformers."""
