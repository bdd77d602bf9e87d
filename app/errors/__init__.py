"""Every error that a caller can meet, one class a kind, each module a branch of the tree.

`root.py` draws the tree. Never a decision, and no error that only one module meets.
"""
