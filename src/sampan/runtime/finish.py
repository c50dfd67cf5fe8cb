"""The last steps on a laid-out tree: nothing needed from outside, compiled, modes and times fixed."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from sampan import i18n
from sampan.errors import BuildError, VerificationError
from sampan.runtime.elf import read_elf
from sampan.runtime.facts import facts
from sampan.spec.layout import LIBRARIES, python_command
from sampan.spec.ports import Progress, Runner


def check_closure(folder: Path) -> None:
    """Every library that any file of the tree needs lies in ``lib/sys``. Raises VerificationError."""
    offered, needed = set(), {}
    for path in sorted(folder.rglob("*")):
        elf = read_elf(path) if path.is_file() else None
        if elf is None:
            continue
        if path.parent == folder / LIBRARIES:
            offered.update({path.name, elf.soname})
        needed.update(dict.fromkeys(elf.needed, path))
    missing = {name: path for name, path in needed.items() if name not in offered}
    for name, path in missing.items():
        raise VerificationError("runtime.needed", file=str(path.relative_to(folder)), library=name)


def compile_tree(folder: Path, python: Path, *, runner: Runner, progress: Progress) -> None:
    """Put .pyc beside every source in ``folder``, by the Python of the tree ``python``. Raises BuildError."""
    script = resources.files("sampan") / "data" / "compile_tree.py"
    with progress.task(i18n.text("runtime.compiling")), resources.as_file(script) as path:
        done = runner.run(
            [*python_command(str(python), facts().python), "-I", "-S", "-B", str(path), str(folder)],
            env={"PYTHONHASHSEED": "0", "LD_LIBRARY_PATH": "", "LD_PRELOAD": ""},
        )
    if done.returncode != 0:
        raise BuildError("runtime.compile", folder=str(folder), detail=done.output.strip()[-500:])


def normalise(folder: Path) -> None:
    """0755 for folders and what is executable, 0644 for the rest."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.stat().st_mode & 0o100:
            path.chmod(0o755)
        else:
            path.chmod(0o644)
