"""Weights: what model this is, as one GGUF file, and what it must answer."""
