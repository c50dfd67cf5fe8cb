"""Joins the stages: the only code that knows more than one of them.

``ship`` is the workshop's whole way, ``target`` what the bundle's own commands do. Stages are imported inside the
functions that use them, since the target has no workshop libraries.
"""
