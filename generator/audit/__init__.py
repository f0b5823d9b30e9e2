"""The audit: plant defects in a reference, and see that its tests catch them."""
