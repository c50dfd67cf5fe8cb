"""Who vouches for a bundle: DSSE signatures over its list of sums, and the keys that a machine trusts.

``signing`` needs the workshop's cryptography; everything else runs on the target with the standard library and the
private runtime's own libcrypto.
"""
