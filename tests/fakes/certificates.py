"""Self-signed certificates for P-256, by the openssl that is here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def words(key: str, certificate: str, name: str = "localhost") -> list[str]:
    """The command that makes both files."""
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    return ["openssl", "req", "-x509", *curve, *subject, "-keyout", key, "-out", certificate]


def make(folder: Path) -> tuple[Path, Path]:
    """Certificate and key for ``localhost``: cert.pem and key.pem. Skips where there is no openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(words(str(key), str(certificate)), check=True, capture_output=True)
    return certificate, key
