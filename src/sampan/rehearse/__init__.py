"""Prove a bundle by running it in an empty, emulated copy of its target, without network."""
