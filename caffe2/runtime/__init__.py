"""Running nets: workspaces, predictors and errors over the native engine."""
