"""Wheels: what the name, the tag and RECORD promise, against what is inside."""
