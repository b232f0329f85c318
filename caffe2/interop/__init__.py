"""Nets of other formats."""
