"""Bundle: one folder, one tar, each file accounted for.

``assemble`` joins the parts, ``seal`` writes the manifest and the sums, ``pack`` makes the tar; ``verify`` checks a
folder and ``unpack`` opens a tar that is not trusted.
"""
