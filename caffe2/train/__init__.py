"""Training: optimizers, learning rates and the count of iterations, as operators of a net."""
