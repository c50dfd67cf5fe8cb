"""Archives that are not trusted, unpacked for reading: wheels, zips, tars, Debian packages.

``zips``, ``tars`` and ``debs`` give the members of one format, one after the other; ``unpack`` writes those that the
audit reads into a folder of its own. Nothing is executed; links, devices and modes are never made; names, numbers,
sizes and memory are bounded (``limits``).
"""
