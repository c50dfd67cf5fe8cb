"""The application with its real wheels: every module imports in an empty root folder, on the oldest CPU class."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.runtime_parts import Parts, bundle_root, need_chroot, run_in

pytestmark = pytest.mark.integration
LIMIT = 85_000_000  # bytes unpacked: runtime and application together
IMPORT_ALL = """
import importlib, pathlib, sys
app = pathlib.Path("/b/app")
names = []
for path in sorted(app.iterdir()):
    if path.suffix == ".dist-info" or path.name == "__pycache__":
        continue
    names.append(path.name.partition(".")[0])
for path in sorted(app.rglob("*.so")):
    names.append(".".join(path.relative_to(app).with_name(path.name.partition(".")[0]).parts))
for name in names:
    importlib.import_module(name)
files = {name: getattr(module, "__file__", None) or "/b/" for name, module in sys.modules.items()}
foreign = [name for name, file in files.items() if not file.startswith("/b/")]
assert not foreign, foreign
print(len(names))
"""
SERVE = """
import asyncio, aiohttp, orjson, uvicorn, uvloop
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
async def answer(request):
    return Response(orjson.dumps({"ok": True}))
async def main():
    config = uvicorn.Config(Starlette(routes=[Route("/", answer)]), uds="/tmp/s", http="httptools", log_level="error")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector("/tmp/s")) as session:
        print(await (await session.get("http://x/")).text())
    server.should_exit = True
    await task
uvloop.run(main())
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("parts") / "store")


@pytest.mark.parametrize("arch", ["aarch64", "x86_64"])
def test_every_module_imports_and_a_server_answers_in_an_empty_root(parts: Parts, arch: str, tmp_path: Path) -> None:
    need_chroot(arch)
    runtime, app = parts.runtime(arch), parts.app(arch)
    root = bundle_root(tmp_path / "root", runtime, app)
    done = run_in(root, runtime.python, "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30
    done = run_in(root, runtime.python, "-c", SERVE)
    assert done.stdout == '{"ok":true}\n', done.stderr


@pytest.mark.parametrize("arch", ["aarch64", "x86_64"])
def test_the_command_line_starts(parts: Parts, arch: str, tmp_path: Path) -> None:
    need_chroot(arch)
    runtime, app = parts.runtime(arch), parts.app(arch)
    root = bundle_root(tmp_path / "root", runtime, app)
    done = run_in(root, runtime.python, "-m", "sampan", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sampan ")


def test_runtime_and_application_stay_within_their_budget(parts: Parts) -> None:
    whole = 0
    for folder in (parts.runtime("aarch64").path, parts.app("aarch64").path):
        whole += sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    assert whole <= LIMIT


def test_every_wheel_names_its_licence(parts: Parts) -> None:
    assert [wheel.name for wheel in parts.app("aarch64").wheels if not wheel.licence] == []
