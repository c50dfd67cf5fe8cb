"""Looks at a model of any common format without running anything of it, and says what the engine makes of it."""
