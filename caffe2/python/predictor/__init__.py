"""Nets for serving."""
