"""Maintainer scripts of this repository."""
