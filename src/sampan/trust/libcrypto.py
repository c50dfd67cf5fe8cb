"""ECDSA verification by OpenSSL's libcrypto, which the private runtime carries for Python's own ``ssl``.

A wheel for this one function would add 13 MB to every bundle. The functions below exist since OpenSSL 1.1.1;
see EVP_DigestVerifyInit(3) and d2i_PUBKEY(3).
"""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache

from sampan.errors import MissingToolError
from sampan.trust.keys import PublicKey

_NAMES = ("libcrypto.so.3", "libcrypto.so.1.1")
_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
# name -> result and arguments
_FUNCTIONS: dict[str, tuple[type, tuple[type, ...]]] = {
    "d2i_PUBKEY": (_POINTER, (_POINTER, _POINTER, ctypes.c_long)),
    "EVP_PKEY_free": (_POINTER, (_POINTER,)),
    "EVP_MD_CTX_new": (_POINTER, ()),
    "EVP_MD_CTX_free": (_POINTER, (_POINTER,)),
    "EVP_sha256": (_POINTER, ()),
    "EVP_DigestVerifyInit": (_INT, (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER)),
    "EVP_DigestVerify": (_INT, (_POINTER, ctypes.c_char_p, _SIZE, ctypes.c_char_p, _SIZE)),
}


@cache
def _library() -> ctypes.CDLL:
    for name in (*_NAMES, ctypes.util.find_library("crypto")):
        try:
            library = ctypes.CDLL(name) if name else None
            if library is None:
                continue
            for function, (result, arguments) in _FUNCTIONS.items():
                getattr(library, function).restype = result
                getattr(library, function).argtypes = arguments
        except (OSError, AttributeError):
            continue
        return library
    raise MissingToolError("trust.no-libcrypto")


def verify(key: PublicKey, message: bytes, signature: bytes) -> bool:
    """Whether ``signature`` (DER) over ``message`` was made with ``key``'s private half, with SHA-256.

    Raises MissingToolError where there is no libcrypto.
    """
    library = _library()
    der = ctypes.create_string_buffer(key.der, len(key.der))
    position = ctypes.c_void_p(ctypes.addressof(der))
    parsed = library.d2i_PUBKEY(None, ctypes.byref(position), len(key.der))
    if not parsed:
        return False  # no point of the curve
    context = library.EVP_MD_CTX_new()
    try:
        ready = context and library.EVP_DigestVerifyInit(context, None, library.EVP_sha256(), None, parsed) == 1
        return bool(
            ready and library.EVP_DigestVerify(context, signature, len(signature), message, len(message)) == 1
        )
    finally:
        library.EVP_MD_CTX_free(context)
        library.EVP_PKEY_free(parsed)
