"""Measure the error of correct outputs, which a tolerance has to allow."""
