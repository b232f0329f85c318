"""The layers of `brew`, by family."""
