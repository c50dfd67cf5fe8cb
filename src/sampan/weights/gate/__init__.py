"""The quality gate: how much of a model each quantization keeps, by measuring."""
