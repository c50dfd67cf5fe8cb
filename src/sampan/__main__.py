"""The command ``sampan``, and ``python -m sampan``: what the bundle's launcher starts."""

from __future__ import annotations


def main() -> None:
    """Run the command line. Ctrl-C while it is still being imported ends as quietly as later, with the same code."""
    try:
        from sampan.cli.main import main as run  # noqa: PLC0415  (Ctrl-C may come meanwhile)

        run()
    except KeyboardInterrupt:  # the verbs say more themselves; before them nothing is begun
        raise SystemExit(130) from None  # ExitCode.INTERRUPTED may not be imported yet


if __name__ == "__main__":
    main()
