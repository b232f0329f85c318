"""Plans as data: which nets run, in which order, how often, and what runs side by side.

Nothing here runs a plan; `workspace.RunPlan` does.
"""
