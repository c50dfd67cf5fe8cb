"""Printing for people and for machines, and the one place where errors become exit codes."""

from __future__ import annotations

import functools
import json
import os
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from rich.console import Console
from rich.table import Table

from sampan import i18n
from sampan.errors import ExitCode, SampanError
from sampan.spec.ports import Progress

P = ParamSpec("P")
R = TypeVar("R")

ERROR_SCHEMA = "sampan/error/1"
_state = {"json": False}


def use_json(wanted: bool) -> None:
    """From now on print JSON alone on stdout."""
    _state["json"] = wanted


def wants_json() -> bool:
    """Whether the verb was called with ``--json``."""
    return _state["json"]


_LOG_WIDTH = 160  # columns where there is no terminal that knows better: a hash and its label in one line


def console() -> Console:
    """Standard output, for results."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _LOG_WIDTH
    return Console(highlight=False, soft_wrap=True, width=width)


def error_console() -> Console:
    """Standard error, for progress and errors; stdout stays clean for pipes."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


class Unheard(Console):
    """Standard error for progress: work goes on when nobody reads it any longer, where rich would end the program."""

    def on_broken_pipe(self) -> None:
        """Say nothing more."""
        self.quiet = True


def progress() -> Progress:
    """Bars on a terminal, lines in a log, nothing beside ``--json``."""
    from sampan.edge.progress import BarProgress, LineProgress, SilentProgress

    if wants_json():
        return SilentProgress()
    target = Unheard(stderr=True, highlight=False, soft_wrap=True)
    return BarProgress(target) if target.is_terminal else LineProgress(target)


def tell(line: str, *, err: bool = False) -> None:
    """A line while something on this machine is being changed: that goes on although nobody may read any longer."""
    stream = sys.stderr if err else sys.stdout
    try:
        print(line, file=stream, flush=True)
    except OSError:  # a pipe or terminal whose other end is gone
        _mute(stream.fileno())


def _mute(handle: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, handle)
    os.close(null)


def print_json(data: object) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def print_value(value: Any, table: Callable[[], Table | str]) -> None:
    """A spec value: its JSON for machines, else the table."""
    from sampan.spec.codec import to_data

    if wants_json():
        print_json(to_data(value))
    else:
        console().print(table())


def facts_table(title: str, rows: Sequence[tuple[str, ...]], headings: Sequence[str] = ()) -> Table:
    """A plain table of short rows."""
    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=bool(headings), box=None, padding=(0, 2)
    )
    width = max((len(row) for row in rows), default=len(headings))
    for index in range(width):
        heading = headings[index] if index < len(headings) else ""
        table.add_column(heading, style="cyan" if index == 0 else None, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def handled(verb: Callable[P, R]) -> Callable[P, R]:
    """Run a verb so that every way it can end has its documented exit code and one clear message."""

    @functools.wraps(verb)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        previous = {number: signal.signal(number, _interrupt) for number in _ends()}
        try:
            return verb(*args, **kwargs)
        except SampanError as error:
            show_error(error)
            raise SystemExit(int(error.exit_code)) from None
        except KeyboardInterrupt:
            error_console().print(i18n.text("cli.interrupted"))
            raise SystemExit(int(ExitCode.INTERRUPTED)) from None
        except BrokenPipeError:
            _mute(sys.stdout.fileno())
            raise SystemExit(int(ExitCode.OK)) from None
        except Exception:
            _show_fault()
            raise SystemExit(int(ExitCode.INTERNAL)) from None
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    return run


def _ends() -> tuple[int, ...]:
    """The signals that end a command. Under nohup SIGHUP is ignored, and stays so."""
    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGTERM, *hang_up)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a command as Ctrl-C does: everything half-made is removed on the way out. So does a terminal that
    is gone (an ssh session that broke); what is said on the way out is not to fail for that.
    """
    if number == signal.SIGHUP:
        for stream in (sys.stdout, sys.stderr):
            if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
                _mute(stream.fileno())
    raise KeyboardInterrupt


def show_error(error: SampanError) -> None:
    """What happened and what to do next; as JSON where the verb was called with ``--json``."""
    if wants_json():
        print_json(
            {
                "schema": ERROR_SCHEMA,
                "key": error.key,
                "stage": error.stage,
                "message": error.message,
                "hint": error.hint,
                "exit_code": int(error.exit_code),
            }
        )
        return
    out = error_console()
    where = i18n.text("cli.in-stage", stage=i18n.text(f"stage.{error.stage}")) if error.stage else ""
    out.print(f"[bold red]{i18n.text('cli.error')}[/] {where}", end="")
    out.print(error.message, markup=False)
    out.print(f"[bold]{i18n.text('cli.hint')}[/] ", end="")
    out.print(error.hint, markup=False)


def _show_fault() -> None:
    """A fault of ours: keep the trace in a file that can be sent, and say so in one line."""
    from sampan.edge.files import write_atomically
    from sampan.edge.store import default_root

    trace = traceback.format_exc()
    path = default_root() / "faults" / f"{os.getpid()}.txt"
    try:
        write_atomically(path, f"{' '.join(sys.argv)}\n{trace}".encode())
        where = str(path)
    except SampanError:
        sys.stderr.write(trace)
        where = "stderr"
    error_console().print(i18n.text("cli.fault", detail=trace.strip().splitlines()[-1], path=where), markup=False)
