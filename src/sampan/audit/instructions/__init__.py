"""Which CPU features the code of one ELF file uses, where, and whether a start of the program reaches them.

``census`` reads one file into CodeFacts, which know nothing of a target: ``families.instructions`` judges them.
``words`` finds instructions of fixed width by mask and value, ``x86`` by decoding; ``a64flow``, ``laflow`` and
``x86flow`` say where a block of code leads, ``reach`` follows that from what the loader starts.
"""
