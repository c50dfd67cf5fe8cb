"""A bundle of three shell scripts: enough for the rehearsal, which types commands and reads answers."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

from sampan.spec.plan import EngineSettings, Plan, Variant
from sampan.spec.target import TargetProfile

NAME = "mini"
INSTALL = """\
sha256sum -c SHA256SUMS >/dev/null || exit 9
mkdir -p "$3/releases/1"
cp -R . "$3/releases/1"
ln -s releases/1 "$3/current"
"""
SERVE = """\
www=/tmp/mini.$$
mkdir -p $www/v1
echo '{"status":"ok"}' >$www/health
echo '{"data":[{"id":"mini-model"}]}' >$www/v1/models
busybox httpd -f -p 127.0.0.1:8080 -h $www &
server=$!
trap 'kill $server; rm -r $www; exit 0' TERM
echo "Serving with the armv8.0 engine."
wait $server
"""
GOLDEN = [{"text": "hello", "score": 0.99951234, "minimum": 0.99, "ok": True}]


def mini_bundle(
    folder: Path, *, install: str = INSTALL, serve: str = SERVE, golden: list[dict[str, object]] | None = None
) -> Path:
    """``folder/mini-1``: install.sh, start.sh and sampan, listed in SHA256SUMS."""
    bundle = folder / f"{NAME}-1"
    bundle.mkdir(parents=True)
    answers = json.dumps({"schema": "sampan/self-test/1", "embeddings": GOLDEN if golden is None else golden})
    sampan = f"""case $1 in
serve)
{serve};;
selftest) cat <<'end'
{answers}
end
;;
status) echo '{{}}' ;;
esac
"""
    scripts = {"install.sh": install, "start.sh": 'exec "$(dirname "$0")/sampan" serve\n', "sampan": sampan}
    sums = []
    for name, text in scripts.items():
        path = bundle / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
        sums.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n")
    (bundle / "SHA256SUMS").write_text("".join(sums))
    return bundle


def mini_plan(profile: TargetProfile) -> Plan:
    """The plan that belongs to it."""
    floor = Variant("armv8.0", "aarch64", 10, ("asimd", "fp"), "generic")
    return Plan(
        name=NAME,
        release=1,
        target=profile.name,
        arch=profile.arch,
        page_size=profile.page_size,
        engine="llama.cpp",
        variants=(floor,),
        task="embedding",
        model="mini-model",
        quantization="F16",
        settings=EngineSettings(512, 512, 512, 1, False, 0, True),
        memory=(),
        memory_total_bytes=1,
        memory_available_bytes=None,
    )


def aarch64_program(path: Path, *instructions: int) -> Path:
    """A static program of these instructions, which then ends with exit code 0."""
    end = (0xD2800000, 0xD2800BA8, 0xD4000001)  # mov x0, #0; mov x8, #93 (exit); svc #0
    code = b"".join(struct.pack("<I", word) for word in (*instructions, *end))
    base, start = 0x400000, 64 + 56
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 183, 1, base + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, start + len(code), start + len(code), 0x10000)
    path.write_bytes(header + segment + code)
    path.chmod(0o755)
    return path


ATOMIC_ADD = (0x910003E2, 0xB8200041)  # mov x2, sp; ldadd w0, w1, [x2]: Armv8.1, not on a Cortex-A57
