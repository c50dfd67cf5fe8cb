"""Brings a model from a hub: which one is meant, which of its files are needed, where they go."""
