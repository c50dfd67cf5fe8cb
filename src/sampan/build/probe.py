"""Build the survey's probe: the small static program that executes one instruction of each CPU feature."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from sampan.build.check import check_static
from sampan.build.failure import explain
from sampan.build.flags import LINK_FLAGS
from sampan.build.toolchain import environment, find_compiler
from sampan.errors import IncompatibleError
from sampan.spec.ports import Runner, Store

_NAME = "probe"
_MAX_BYTES = 8 << 10  # it travels as text in a script that a person reads
_FLOORS = {"aarch64": "generic", "loongarch64": "generic_la64", "x86_64": "x86_64"}
# No C library, as for the launcher; the compiler itself must emit nothing that is to be tried out.
_FLAGS = (
    *("-nostdlib", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-std=gnu11", "-Os", "-g0"),
    *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables", *LINK_FLAGS),
)


def flags(arch: str) -> tuple[str, ...]:
    """The compiler's flags for ``arch``. Raises IncompatibleError ``build.architecture``."""
    if arch not in _FLOORS:
        raise IncompatibleError("build.architecture", arch=arch, known=", ".join(sorted(_FLOORS)))
    return ("-target", f"{arch}-linux-none", f"-mcpu={_FLOORS[arch]}", *_FLAGS)


def compiler() -> str:
    """The compiler's name and version. Raises MissingToolError."""
    return find_compiler().label


def build(arch: str, sources: Mapping[str, str], *, runner: Runner, store: Store) -> Path:
    """The program for ``arch`` (``uname -m``), in the store; ``sources``: file name to text, ``probe.c`` among them.

    Raises BuildError, MissingToolError, IncompatibleError, FilesystemError.
    """
    tool, words = find_compiler(), flags(arch)

    def make(folder: Path) -> None:
        work = store.scratch(_NAME, {"arch": arch})
        with store.locked(f"{_NAME}-{arch}"):
            for name, text in sources.items():
                (work / name).write_text(text, encoding="utf-8")
            log = work / "build.log"
            log.unlink(missing_ok=True)
            argv = [str(tool.zig), "cc", *words, f"{_NAME}.c", "-o", str(folder / _NAME)]
            done = runner.run(argv, cwd=work, env=environment(store, tool), log=log)
            if done.returncode != 0:
                raise explain(done, step=_NAME, log=log, tree=work)
        check_static(folder / _NAME, arch, max_bytes=_MAX_BYTES)
        (folder / _NAME).chmod(0o755)

    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sources.items()}
    key = {"sources": digests, "compiler": tool.label, "arch": arch, "flags": list(words)}
    return store.get_or_make(_NAME, key, make) / _NAME
