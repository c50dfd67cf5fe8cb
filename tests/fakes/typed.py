"""The command line in this process, in the language in force: each start of a process costs a third of a second."""

from __future__ import annotations

from sampan.cli import entry, main, output


def typed(*words: object) -> int:
    """The exit code, as the shell would see it; what was printed goes to the test's own stdout and stderr."""
    try:
        return entry.run(main.build_app(), [str(word) for word in words])
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        output.use_json(False)
