"""A bundle's life on a booted aarch64 machine, from the tar to nothing."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.boot.footprint import Footprint
from tests.boot.machine import BOOT_SECONDS, Computer, wait_for
from tests.boot.transcript import Transcript
from tests.boot.workshop import LONGEST, NAME, Workshop

PORT = 8080
PREFIX = f"/opt/sampan/{NAME}"
SAMPAN = f"{PREFIX}/current/sampan"
QUESTIONS = ("How do I reset my password?", "The cargo came by boat.")
MODEL, SIZE = "all-MiniLM-L6-v2", 384  # of its vectors


@dataclass
class Story:
    """Each step leaves the machine as the next one finds it."""

    computer: Computer
    workshop: Workshop
    log: Transcript

    def on_target(self, *words: str, ends: int = 0) -> str:
        """Type a command there; what it printed."""
        script = shlex.join(words)
        self.log.say(f"kunpeng# {script}")
        done = self.computer.ssh(script)
        self.log.answer(done.stdout + done.stderr)
        assert done.returncode == ends, f"{script}: {done.returncode}"
        return done.stdout + done.stderr

    def carry(self, file: Path) -> None:
        """Over ssh into root's home folder."""
        print_of = subprocess.check_output(
            ["ssh-keygen", "-lf", str(self.computer.root.host_key)], text=True
        ).split()[1]
        target = f"ssh://root@127.0.0.1:{self.computer.port}/root/"
        login = ("--identity", str(self.computer.root.key), "--accept-host-key", print_of)
        self.workshop.sampan("carry", str(file.relative_to(self.workshop.folder)), target, *login, "--timeout", "120")

    def what_it_is(self) -> None:
        """A real boot: kernel, systemd, CPU."""
        self.on_target("uname", "-srm")
        assert self.computer.run("uname", "-m").strip() == "aarch64"
        self.on_target("sh", "-c", "systemctl --version | head -n 1; ps -o pid,comm -p 1; getconf PAGESIZE; free -m")
        self.on_target("grep", "-m", "2", "-E", "Features|CPU part", "/proc/cpuinfo")
        self.on_target("openssl", "version")

    def vectors(self) -> list[list[float]]:
        """The service's answers, asked from the workshop through a tunnel."""
        code, said = self.ask(*QUESTIONS)
        assert code == 200, said
        found = [[float(number) for number in each["embedding"]] for each in said["data"]]
        assert [len(vector) for vector in found] == [SIZE] * len(QUESTIONS)
        return found

    def ask(self, *texts: str) -> tuple[int, dict[str, Any]]:
        """Status and answer of a request for embeddings."""
        body = json.dumps({"model": MODEL, "input": texts}).encode()
        with self.computer.tunnel(PORT) as port:
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/embeddings", body, headers)
            try:
                with urllib.request.urlopen(request, timeout=600) as answer:
                    return int(answer.status), json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)

    def answers_texts_up_to(self, tokens: int) -> None:
        """That many tokens, its start and end included, and not one more."""
        for words, wanted in ((tokens - 2, 200), (tokens - 1, 400)):
            code, said = self.ask("boat " * words)
            shown = said["error"]["message"] if "error" in said else f"{said['usage']['prompt_tokens']} tokens"
            self.log.say(f"POST /v1/embeddings with {words} words: {code}, {shown}")
            assert code == wanted

    def answers_like(self, before: list[list[float]], at_least: float) -> None:
        """Ask again; each cosine with the answer before must be that high."""
        cosines = [cosine(*pair) for pair in zip(before, self.vectors(), strict=True)]
        self.log.say(f"POST /v1/embeddings: cosines with the answers before: {[round(each, 6) for each in cosines]}")
        assert min(cosines) >= at_least

    def install(self) -> None:
        """From the tar, with the key that came another way."""
        self.on_target(
            "sh", "-c", f"cd /root && sha256sum -c {self.workshop.tar(1).name}.sha256 && tar xf minilm-1.tar"
        )
        said = self.on_target("/root/minilm-1/install.sh", "--key", "/root/site.pub")
        assert "✓ Self-test" in said
        self.serves(1)

    def serves(self, release: int) -> None:
        """Enabled, ready, under its own user, within its limits, at that release."""
        status = self.status()
        shown = {key: status.get(key) for key in ("release", "mode", "state", "enabled", "health", "pending")}
        self.log.say(f"status: {shown}")
        wanted = {"release": release, "mode": "systemd", "state": "active", "enabled": True, "health": "ready"}
        assert shown == {**wanted, "pending": None}
        assert self.computer.run("readlink", f"{PREFIX}/current").strip() == f"releases/{release}"
        main = str(status["pid"])
        assert self.computer.run("stat", "--format=%U", f"/proc/{main}").strip() == f"sampan-{NAME}"
        engines = self.on_target("sh", "-c", "ps -o user:16,args -C llama-server --no-headers | cut -c1-110")
        mine = f"/releases/{release}/engine/llama.cpp/armv8.2-dotprod-fp16/"
        assert [mine in line for line in engines.splitlines()] == [True], "one engine, of the release in force"
        limit = self.computer.run("systemctl", "show", "--property=MemoryMax", f"sampan-{NAME}")
        self.log.say(limit.strip())
        assert "infinity" not in limit
        self.answers_texts_up_to(LONGEST[release])

    def status(self) -> dict[str, object]:
        """As `sampan status --json` says it."""
        return self.computer.json(SAMPAN, "status", "--json")

    def reset(self) -> None:
        """The reset button, and nothing typed until it serves again."""
        before = self.computer.run("cat", "/proc/sys/kernel/random/boot_id").strip()
        self.log.say("(the reset button: QMP system_reset)")
        self.computer.reset()
        after = self.computer.wait_until_booted(after=before)
        self.log.say(f"boot {before[:8]} -> boot {after[:8]}")
        wait_for(lambda: self.status().get("health") == "ready", BOOT_SECONDS, "the service after the reset")

    def delta(self) -> Path:
        """What release 2 has and this machine has not."""
        receipt = self.on_target(SAMPAN, "receipt")
        (self.workshop.folder / "receipt.txt").write_text(receipt)
        self.workshop.sampan("bundle", "delta", self.workshop.tar(2).name, "--since", "receipt.txt", "--out", "delta")
        packed = next((self.workshop.folder / "delta").glob("*.tar"))
        whole = self.workshop.tar(2).stat().st_size
        self.log.say(f"delta {packed.stat().st_size / 1e6:.1f} MB of {whole / 1e6:.1f} MB")
        assert packed.stat().st_size < whole / 2
        return packed

    def upgrade_that_is_cut_off(self, delta: str) -> None:
        """The reset button when the release to be is in force and not yet proved; nothing is typed afterwards."""
        upgrade = shlex.join([SAMPAN, "upgrade", f"/root/{delta}", "--key", "/root/site.pub"])
        self.log.say(f"kunpeng# {upgrade} &")
        switched = f'test "$(readlink {PREFIX}/current)" = releases/2'
        until = f"until {switched}; do kill -0 $! || exit 1; sleep 0.1; done"
        done = self.computer.ssh(f"{upgrade} >/tmp/upgrade.log 2>&1 & {until} 2>/dev/null; sync")
        assert done.returncode == 0, self.computer.ssh("cat /tmp/upgrade.log").stdout
        self.on_target("grep", "-E", '"(verb|release|stage)":', f"{PREFIX}/pending.json")
        self.on_target("readlink", f"{PREFIX}/current")
        self.reset()
        self.on_target("journalctl", "--unit", f"sampan_recover-{NAME}", "--boot", "--no-pager", "--output=cat")
        self.serves(1)

    def upgrade(self, delta: str) -> None:
        """Again, and to its end."""
        said = self.on_target(SAMPAN, "upgrade", f"/root/{delta}", "--key", "/root/site.pub")
        assert "✓ Self-test" in said
        self.serves(2)

    def roll_back(self) -> None:
        """To release 1, configuration included."""
        self.on_target(SAMPAN, "rollback")
        self.serves(1)
        self.on_target(SAMPAN, "releases")

    def uninstall(self, before: Footprint) -> None:
        """Nothing is left but what was there before."""
        self.on_target(SAMPAN, "uninstall")
        self.on_target("sh", "-c", "rm -r /root/minilm-* /root/site.pub; systemctl --failed --no-legend")
        after = Footprint.of(self.computer)
        for line in after.unlike(before):
            self.log.say(f"    {line}")
        assert after == before, "uninstall left something behind, or took too much"
        self.log.say(f"{len(after.files)} paths, accounts and units: as before the installation")


def cosine(one: list[float], other: list[float]) -> float:
    """Of two vectors."""
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one) * sum(b * b for b in other))
