"""``sampan verify``: is every file as it was sealed, and who vouches for it? Executes nothing of the bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sampan import i18n
from sampan.cli import options, output

if TYPE_CHECKING:
    from sampan.flow.trusting import BundleCheck

_MOST_SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add the verb."""
    options.add(app, verify, options.TARGET_PANEL)


def verify(
    bundle: Path | None = typer.Argument(None, help=i18n.text("cli.verify.opt.bundle"), metavar="[BUNDLE]"),
    key: list[Path] = typer.Option([], "--key", "-k", help=i18n.text("cli.opt.public-key"), metavar="FILE"),
    trusted: Path | None = typer.Option(None, "--trusted", help=i18n.text("cli.opt.trusted"), file_okay=False),
    signed: bool = typer.Option(False, "--signed", help=i18n.text("cli.opt.signed")),
    json: options.Json = False,
) -> None:
    """Exit code 9 where a file is not as it was sealed, or the signature does not hold."""
    from sampan.bundle.delta import refuse_delta
    from sampan.errors import ExitCode
    from sampan.flow import target, trusting
    from sampan.trust import keyring

    if bundle:
        refuse_delta(bundle)
    keys = [keyring.read(path) for path in key] or keyring.load(trusted or keyring.SYSTEM)
    checked = trusting.check(bundle or target.bundle_root().resolve(), keys, output.progress())
    output.print_value(checked, lambda: "\n".join(_lines(checked, named=bool(key))))
    needed = signed or bool(keys)
    bad = checked.verdict.status in ("forged", "other-bundle")
    if checked.problems or bad or (needed and not checked.verdict.trusted):
        raise SystemExit(int(ExitCode.VERIFICATION_FAILED))


def _lines(checked: BundleCheck, *, named: bool) -> list[str]:
    """``named``: the keys that count were given by name, so that trusting another one would change nothing."""
    verdict, count = checked.verdict, len(checked.problems)
    lines = [i18n.text("cli.verify.what", name=checked.name, release=checked.release, files=checked.files)]
    lines += [i18n.text("cli.verify.whole" if not count else "cli.verify.damaged", count=count)]
    lines += [f"  {problem.message}" for problem in checked.problems[:_MOST_SHOWN]]
    lines += [i18n.text("cli.verify.more", count=count - _MOST_SHOWN)] if count > _MOST_SHOWN else []
    other = named and verdict.status == "unknown-signer"
    lines += [i18n.text("cli.verify.other-signer" if other else f"cli.verify.{verdict.status}")]
    lines += [f"  SHA256:{signer}" for signer in (*verdict.signers, *verdict.strangers)]
    return lines
