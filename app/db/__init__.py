"""Stores: SQL in .sql files, one door to the driver. Never a decision about who may do what."""
