"""The frozen values that travel between stages. Nothing here does anything."""
