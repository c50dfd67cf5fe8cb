"""Limits of a service as they are typed: ``--memory 4G --cpus 4 --cpu-list 0-3``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sampan.cli.sizes import parse_size
from sampan.errors import UsageError

if TYPE_CHECKING:
    from sampan.install.model import OwnLimits

_LIST = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")
_LEAST = 64 << 20


def own_limits(memory: str | None, cpus: float | None, cpu_list: str | None) -> OwnLimits:
    """Raises UsageError for a size under 64 MiB and for what is no list of CPUs."""
    from sampan.install.model import OwnLimits

    size = parse_size(memory) if memory else None
    if size is not None and size < _LEAST:
        raise UsageError("cli.bound", option="--memory", value=memory, lowest="64M", highest="64T")
    if cpu_list is not None and not _LIST.fullmatch(cpu_list):
        raise UsageError("cli.limit.not-a-list", value=cpu_list)
    return OwnLimits(size, round(cpus * 100) if cpus else None, cpu_list)
