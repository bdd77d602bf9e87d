"""Strongroom: one encrypted file a member, one registry for the group.

Here belong the service's packages, each with a docstring of its own. Nothing runs
at import.
"""
