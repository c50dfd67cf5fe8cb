"""The whole stage with wheels of our own making."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from tests.unit.wheelhouse.conftest import FakeFetcher, FakeRunner, runtime, wheel

from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.errors import BadInputError, BuildError, IncompatibleError
from sampan.spec.artefacts import RuntimeTree, Wheelhouse
from sampan.wheelhouse import make as stage


@pytest.fixture
def prepared(tmp_path: Path, fetcher: FakeFetcher, monkeypatch: pytest.MonkeyPatch) -> FakeFetcher:
    """A lock of two wheels, and both at hand."""
    lines = []
    for name in ("one", "two"):
        path = wheel(tmp_path / "wheels", name, {f"{name}/__init__.py": b"A = 1\n"})
        fetcher.wheels[f"{name}==1.0"] = path
        lines.append(f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    monkeypatch.setattr(stage, "lock_text", lambda: "".join(lines))
    return fetcher


def _make(fetcher: FakeFetcher, runner: FakeRunner, root: Path, target: RuntimeTree | None = None) -> Wheelhouse:
    return stage.make(
        target or runtime(),
        runtime("x86_64"),
        runner=runner,
        fetcher=fetcher,
        store=DiskStore(root),
        progress=SilentProgress(),
    )


def test_wheels_and_sampan_lie_side_by_side(prepared: FakeFetcher, runner: FakeRunner, tmp_path: Path) -> None:
    made = _make(prepared, runner, tmp_path / "store")
    assert [item.name for item in made.wheels] == ["one", "two", "sampan"]
    assert (made.arch, made.python) == ("aarch64", "3.11.2")
    app = Path(made.path)
    assert app.name == "app"
    assert (app / "one/__init__.py").is_file()
    assert (app / "sampan/__main__.py").is_file()
    assert {path.name for path in app.parent.iterdir()} == {"app", "wheels.json"}


def test_the_targets_tags_are_asked_for_and_the_hosts_python_compiles(
    prepared: FakeFetcher, runner: FakeRunner, tmp_path: Path
) -> None:
    _make(prepared, runner, tmp_path / "store")
    assert {item[0] for item in prepared.asked} == {"one==1.0", "two==1.0"}
    assert all(item[1][0] == "cp311-cp311-manylinux_2_36_aarch64" for item in prepared.asked)
    (argv,) = runner.calls
    assert argv[0] == "/runtime/x86_64/lib/sys/ld.so"


def test_the_second_time_nothing_is_fetched(prepared: FakeFetcher, runner: FakeRunner, tmp_path: Path) -> None:
    first = _make(prepared, runner, tmp_path / "store")
    prepared.asked.clear()
    assert _make(prepared, runner, tmp_path / "store") == first
    assert prepared.asked == []


def test_equal_inputs_give_equal_bytes(prepared: FakeFetcher, runner: FakeRunner, tmp_path: Path) -> None:
    def contents(made: Wheelhouse) -> dict[str, bytes]:
        app = Path(made.path)
        return {path.relative_to(app).as_posix(): path.read_bytes() for path in app.rglob("*") if path.is_file()}

    assert contents(_make(prepared, runner, tmp_path / "a")) == contents(_make(prepared, runner, tmp_path / "b"))


def test_pythons_that_differ_are_refused(prepared: FakeFetcher, runner: FakeRunner, tmp_path: Path) -> None:
    with pytest.raises(IncompatibleError) as caught:
        _make(prepared, runner, tmp_path / "store", runtime(python="3.11.9"))
    assert caught.value.key == "wheelhouse.pythons"


def test_a_failing_compiler_leaves_nothing(prepared: FakeFetcher, runner: FakeRunner, tmp_path: Path) -> None:
    runner.returncode = 1
    with pytest.raises(BuildError) as caught:
        _make(prepared, runner, tmp_path / "store")
    assert caught.value.key == "wheelhouse.compile"
    assert "said why" in str(caught.value)
    assert list((tmp_path / "store/made/wheelhouse").iterdir()) == []


def test_a_bad_wheel_leaves_nothing(prepared: FakeFetcher, runner: FakeRunner, tmp_path: Path) -> None:
    prepared.wheels["two==1.0"].write_bytes(b"cut")
    with pytest.raises(BadInputError):
        _make(prepared, runner, tmp_path / "store")
    assert list((tmp_path / "store/made/wheelhouse").iterdir()) == []
