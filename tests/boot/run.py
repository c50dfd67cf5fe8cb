"""A bundle's whole life on a real boot of an emulated aarch64 machine.

    python -m tests.boot.run --log boot.log

Not part of the test run: see README.md.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.boot import debian_root
from tests.boot.footprint import Footprint
from tests.boot.machine import CORES, CPU, MEMORY, Computer
from tests.boot.story import Story
from tests.boot.transcript import Transcript
from tests.boot.workshop import Workshop

from sampan.errors import ExitCode

DISK = "3G"


def main() -> int:
    """Exit code 0: the whole story held; 1: a step did not; 5: such a machine cannot be made here."""
    parser = argparse.ArgumentParser(prog="python -m tests.boot.run", description=__doc__)
    parser.add_argument("--log", type=Path, default=Path("boot.log"), help="where the transcript goes")
    parser.add_argument("--keep", action="store_true", help="keep disk and console log where it fails")
    parser.add_argument("--cut", action="store_true", help="also press the reset button in the middle of the upgrade")
    parser.add_argument("--nice", type=int, default=5, help="of the emulation")
    given = parser.parse_args()
    why = debian_root.missing()
    if why:
        print(why, file=sys.stderr)
        return int(ExitCode.MISSING_TOOL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the emulator is ended then, too
    given.log.unlink(missing_ok=True)
    work = Path(tempfile.mkdtemp(prefix="sampan-boot-"))
    log = Transcript(given.log, {f"{work}/": "", str(work): ".", str(debian_root.place() / "key"): "login-key"})
    held = False
    try:
        live(work, log, given.nice, cut=given.cut)
        held = True
    except (AssertionError, RuntimeError) as error:
        log.say(f"\nthe story broke: {error}")
    finally:
        if held or not given.keep:
            shutil.rmtree(work)
        else:
            print(f"kept: {work}", file=sys.stderr)
    return 0 if held else 1


def live(work: Path, log: Transcript, nice: int, *, cut: bool) -> None:
    """Make everything, then live it."""
    root = debian_root.ready(log.say)
    with log.step("In the workshop: two releases, signed"):
        workshop = Workshop(work / "out", log)
        workshop.make()
    computer = Computer(root, work, nice)
    root.disk(computer.disk, DISK)
    try:
        with log.step(f"Boot: qemu-system-aarch64, {CPU}, {CORES} cores, {MEMORY}, systemd as PID 1"):
            computer.switch_on()
            computer.wait_until_booted()
            story = Story(computer, workshop, log)
            story.what_it_is()
        tell(story, cut=cut)
        computer.switch_off()
        debian_root.run("e2fsck", "-fn", str(computer.disk))
        log.say("\ne2fsck -fn finds the disk sound; the whole story held")
    finally:
        computer.unplug()


def tell(story: Story, *, cut: bool) -> None:
    """The steps in their order."""
    log, workshop = story.log, story.workshop
    before = Footprint.of(story.computer)
    with log.step("Carry release 1 over ssh"):
        for file in (workshop.tar(1), workshop.folder / f"{workshop.tar(1).name}.sha256", workshop.key):
            story.carry(file)
    with log.step("Install it from the tar; it serves and tests itself"):
        story.install()
        first = story.vectors()
    with log.step("Hard reset: the service is back by itself"):
        story.reset()
        story.serves(1)
        story.answers_like(first, 0.999999)
    with log.step("A delta to release 2 from this machine's receipt"):
        delta = story.delta()
        story.carry(delta)
    if cut:
        with log.step("Hard reset in the middle of the upgrade: the boot takes it back and serves"):
            story.upgrade_that_is_cut_off(delta.name)
            story.answers_like(first, 0.999999)
    with log.step("Upgrade by delta"):
        story.upgrade(delta.name)
        story.answers_like(first, 0.999999)
    with log.step("Roll back"):
        story.roll_back()
        story.answers_like(first, 0.999999)
    with log.step("Uninstall"):
        story.uninstall(before)


if __name__ == "__main__":
    sys.exit(main())
