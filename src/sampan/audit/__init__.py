"""Audit: will every file run on that target? Files are read, never executed or loaded.

``elf`` reads one file into a value, ``gather`` reads all that a question needs, ``closure`` simulates the loader on
those values, each module of ``families`` judges one kind of rule, ``audit`` joins them.
"""
