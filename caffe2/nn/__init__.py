"""Layers: operators together with their parameters."""
