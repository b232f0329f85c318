"""Nets as data: building them, differentiating, checking, saving and drawing them.

Nothing here runs a net.
"""
