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


def build(arch: str, *, runner: Runner, store: Store) -> Path:
    """The launcher for ``arch`` (``uname -m``), in the store; the same bytes from the same source and compiler.

    Raises BuildError, MissingToolError, IncompatibleError, FilesystemError.
    """
    target = engine_pin().architecture(arch)
    compiler = find_compiler()
    code = (resources.files("sampan") / "data" / "launcher" / f"{_NAME}.c").read_bytes()
    flags = [
        *(
            "-target",
            target.target,
            f"-mcpu={target.floor}",
            "-std=gnu11",
            "-Os",
            "-g0",
            "-Wall",
            "-Wextra",
            "-Werror",
        ),
        *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables", f'-DPYTHON="python{PYTHON}"', *LINK_FLAGS),
    ]

    def make(folder: Path) -> None:
        work = store.scratch("launcher", {"arch": arch})
        with store.locked(f"launcher-{arch}"):
            source = work / f"{_NAME}.c"
            source.write_bytes(code)
            argv = [str(compiler.zig), "cc", *flags, source.name, "-o", str(folder / _NAME)]
            log = work / "build.log"
            log.unlink(missing_ok=True)
            done = runner.run(argv, cwd=work, env=environment(store, compiler), log=log)
            if done.returncode != 0:
                raise explain(done, step=_NAME, log=log, tree=work)
        check_static(folder / _NAME, arch, max_bytes=_MAX_BYTES)
        (folder / _NAME).chmod(0o755)

    key = {"source": hashlib.sha256(code).hexdigest(), "compiler": compiler.label, "arch": arch, "flags": flags}
    return store.get_or_make("launcher", key, make) / _NAME
