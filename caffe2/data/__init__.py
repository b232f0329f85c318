"""Data on its way into nets: records of named fields."""
