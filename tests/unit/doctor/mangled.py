"""What happens to a machine's text on its way to the reader; each function gives the same text, mangled."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from sampan.doctor import data

Mangle = Callable[[str], str]

PREFIXES = {
    "syslog": "Nov 30 12:00:01 kylin-01 start.sh[4711]: ",
    "journal-iso": "2026-11-30T12:00:01+0800 kylin-01 start.sh[4711]: ",
    "python-logging": "2026-11-30 12:00:01,123 ",
    "dmesg": "[ 1234.567890] ",
    "dmesg-T": "[Mon Nov 30 12:00:01 2026] ",
    "compose": "bge-1  | ",
    "kubectl": "2026-11-30T12:00:01.123456789Z ",
    "docker-json-time": "2026-11-30T12:00:01.123456789+08:00 ",
    "quoted": "> ",
    "numbered": "17: ",
}


def _prefixed(prefix: str) -> Mangle:
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.splitlines())


def _wrapped(width: int) -> Mangle:
    def cut(text: str) -> str:
        lines = text.splitlines()
        return "\n".join(line[at : at + width] for line in lines for at in range(0, len(line), width))

    return cut


def painted(text: str) -> str:
    """GCC's and grep's colours in the middle of a line."""
    return "\n".join(f"\x1b[01;31m\x1b[K{line[:9]}\x1b[m\x1b[K{line[9:]}" for line in text.splitlines())


def painted_words(text: str) -> str:
    """Every word in another colour, as log viewers do."""
    return "\n".join(
        " ".join(f"\x1b[38;5;{31}m{word}\x1b[0m" for word in line.split(" ")) for line in text.split("\n")
    )


def windows(text: str) -> str:
    """CRLF, and the wide blanks with which an input method indents."""
    return "".join(f"\u3000\u3000{line}\r\n" for line in text.splitlines())


def blog(text: str) -> str:
    """Curly quotes."""
    return text.replace("`", "‘").replace("'", "’").replace('"', "”")


def full_width(text: str) -> str:
    """Punctuation as a Chinese input method makes it."""
    for plain, wide in ((": ", "："), (", ", "，"), (" (", "（"), (") ", "）"), ("; ", "；")):
        text = text.replace(plain, wide)
    return text


def no_break(text: str) -> str:
    """Blanks as web pages have them, and a zero-width mark in front."""
    return "\ufeff" + text.replace("  ", "\u00a0 ")


def fenced(text: str) -> str:
    """Pasted into a ticket between Chinese sentences."""
    return f"麻烦看一下，服务起不来：\n```\n{text}\n```\n昨天还是好的，没有改过配置。\n"


def mailed(text: str) -> str:
    """Broken at blanks."""
    return "\n".join(
        part for line in text.splitlines() for part in textwrap.wrap(line, 70, break_long_words=False) or [""]
    )


def amid(text: str) -> str:
    """Amid what a healthy service prints."""
    before = "".join(
        f'INFO:     10.0.0.{number}:5{number} - "POST /v1/embeddings HTTP/1.1" 200 OK\n' for number in range(40)
    )
    return before + text + before


MANGLES: dict[str, Mangle] = {
    **{name: _prefixed(prefix) for name, prefix in PREFIXES.items()},
    **{f"wrapped-{width}": _wrapped(width) for width in (80, 100, 132)},
    "coloured": painted,
    "coloured-words": painted_words,
    "windows": windows,
    "blog": blog,
    "full-width": full_width,
    "no-break": no_break,
    "ticket": fenced,
    "amid": amid,
    "mail": mailed,
}


def in_chinese(text: str) -> list[str]:
    """The text in each Chinese wording that the phrases know; none where programs print it in English only."""
    found = []
    phrases: dict[str, list[str]] = data.table("phrases.toml")["phrases"]
    for wording in range(max(map(len, phrases.values()))):
        said = text
        for meant, all_said in sorted(phrases.items(), key=lambda each: -len(each[0])):
            said = said.replace(meant, all_said[min(wording, len(all_said) - 1)])
        if said != text and said not in found:
            found.append(said)
    return found
