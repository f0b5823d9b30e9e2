"""The audit: plant defects in a reference and check that its tests catch them."""
