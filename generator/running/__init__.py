"""Rendered tests as pytest runs them: classes, options, fixtures, workers, reports."""
