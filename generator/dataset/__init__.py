"""The dataset's files as values: paths, JSON with positions, schemas, tensors."""
