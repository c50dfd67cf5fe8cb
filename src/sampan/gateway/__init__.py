"""The gateway: an OpenAI-compatible API in front of an engine in a process of its own.

``serve`` runs it, ``create_app`` builds the ASGI application over any ``Engine``, ``selftest`` compares a running
service with its golden set. Imports the base dependencies only, since it runs on the target.
"""
