"""Install: from a verified bundle on the target to a running service, and back to nothing.

``steps.install`` does it, ``service`` asks and ends it; ``unit`` and ``preflight`` decide and touch nothing.
"""
