"""Build the small static program that starts a bundle's private Python."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

from sampan.build.check import check_static
from sampan.build.failure import explain
from sampan.build.flags import LINK_FLAGS
from sampan.build.pins import engine_pin
from sampan.build.toolchain import environment, find_compiler
from sampan.spec.layout import PYTHON
from sampan.spec.ports import Runner, Store

_MAX_BYTES = 64 << 10
_NAME = "launcher"
# No C library: building one takes a minute for each architecture, the program itself a tenth of a second.
_FLAGS = (
    *("-nostdlib", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-std=gnu11", "-Os", "-g0"),
    *("-Wall", "-Wextra", "-Werror", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
)


def build(arch: str, *, runner: Runner, store: Store) -> Path:
    """The launcher for ``arch`` (``uname -m``), in the store; the same bytes from the same source and compiler.

    Raises BuildError, MissingToolError, IncompatibleError, FilesystemError.
    """
    target = engine_pin().architecture(arch)
    compiler = find_compiler()
    sources = _sources()
    flags = [
        *("-target", f"{arch}-linux-none", f"-mcpu={target.floor}"),
        *_FLAGS,
        f'-DPYTHON="python{PYTHON}"',
        *LINK_FLAGS,
    ]

    def make(folder: Path) -> None:
        work = store.scratch("launcher", {"arch": arch})
        with store.locked(f"launcher-{arch}"):
            for name, code in sources.items():
                (work / name).write_bytes(code)
            argv = [str(compiler.zig), "cc", *flags, f"{_NAME}.c", "-o", str(folder / _NAME)]
            log = work / "build.log"
            log.unlink(missing_ok=True)
            done = runner.run(argv, cwd=work, env=environment(store, compiler), log=log)
            if done.returncode != 0:
                raise explain(done, step=_NAME, log=log, tree=work)
        check_static(folder / _NAME, arch, max_bytes=_MAX_BYTES)
        (folder / _NAME).chmod(0o755)

    digests = {name: hashlib.sha256(code).hexdigest() for name, code in sources.items()}
    key = {"sources": digests, "compiler": compiler.label, "arch": arch, "flags": flags}
    return store.get_or_make("launcher", key, make) / _NAME


def _sources() -> dict[str, bytes]:
    folder = resources.files("sampan") / "data" / "launcher"
    return {name: (folder / name).read_bytes() for name in (f"{_NAME}.c", "kernel.h")}
