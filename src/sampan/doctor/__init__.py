"""Doctor: what went wrong, from what a machine printed. Knowledge is data (``data/doctor/*.toml``).

Standard library only: it runs on the target, beside a service that is down.
"""
