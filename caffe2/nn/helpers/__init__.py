"""The layers of brew, by family.  Each module lists its own in HELPERS."""
