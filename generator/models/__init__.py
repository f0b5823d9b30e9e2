"""Models: which definitions a model's config.json needs."""
