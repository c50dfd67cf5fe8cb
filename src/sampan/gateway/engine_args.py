"""EngineSettings -> llama-server's command line. Pure.

Flags are those of the pinned llama.cpp (common/arg.cpp); an integration test holds each against the real
executable's ``--help``, since they change between versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sampan.spec.plan import EngineSettings

# Variables that would change what the plan decided: the loader's, llama.cpp's own flags by environment, and the
# switch of its Vertex AI mode. Everything else passes, QEMU_* in particular.
_DROPPED_PREFIXES = ("LD_", "LLAMA_", "AIP_")


def engine_argv(
    executable: Path,
    model: Path,
    socket: Path,
    settings: EngineSettings,
    *,
    threads: int,
    alias: str,
    rerank: bool = False,
) -> tuple[str, ...]:
    """The whole command. ``threads`` >= 1 is what this process may really use; ``alias`` the public model id."""
    argv = [
        str(executable),
        *("--model", str(model)),
        *("--alias", alias.replace(",", "_")),  # a comma would make two aliases
        *("--host", str(socket)),
        *("--ctx-size", str(settings.context)),
        *("--batch-size", str(settings.batch)),
        *("--ubatch-size", str(settings.ubatch)),
        *("--parallel", str(settings.slots)),
        "--kv-unified" if settings.unified_kv else "--no-kv-unified",
        *("--threads", str(threads)),
        *("--threads-batch", str(threads)),
        *("--cache-ram", str(settings.cache_ram_mib)),
        *("--load-mode", settings.load_mode),
        *("--fit", "off"),  # the plan has fitted already; silent changes would make it lie
        "--offline",
        "--no-ui",
        "--no-slots",
        *("--log-colors", "off"),
        *("--log-verbosity", "2"),  # warnings and errors: at the default it prints several lines a request
    ]
    if rerank:
        argv.append("--reranking")  # implies embeddings and pooling by rank
    elif settings.embedding:
        argv.append("--embeddings")
    if settings.pooling is not None:
        argv += ["--pooling", settings.pooling]
    argv += _as_planned(settings)
    return tuple(argv)


def _as_planned(settings: EngineSettings) -> list[str]:
    """What a plan may set and an older one does not know."""
    words = []
    if settings.slot_tokens:
        words += ["--kv-unified-per-slot", str(settings.slot_tokens)]  # with split caches too, whatever its name
    if settings.kv_type != "f16":
        words += ["--cache-type-k", settings.kv_type, "--cache-type-v", settings.kv_type, "--flash-attn", "on"]
    if settings.numa is not None:
        words += ["--numa", settings.numa]
    return words


def flags(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The flag names of a command, without their values."""
    return tuple(word for word in argv[1:] if word.startswith("--"))


def engine_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Our environment without what would change the engine behind the plan's back."""
    return {name: value for name, value in environ.items() if not name.startswith(_DROPPED_PREFIXES)}
