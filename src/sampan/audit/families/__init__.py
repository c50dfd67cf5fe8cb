"""One module a family of rules: ``judge(path, world, closure)`` gives the findings of one sound ELF file.

Instructions, GPU code, hardening traps and wheels become further modules; codes never change meaning.
"""
