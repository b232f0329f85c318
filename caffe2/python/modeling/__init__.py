"""Parameters and their initializers."""
