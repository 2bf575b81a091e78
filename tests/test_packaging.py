"""What is shipped: the wheel from the sdist, the command from outside the checkout, and how light its start is."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import redkey.wire
from redkey.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parents[1]
# The contracts, and the plan that the demo runs.
CONTRACT_FOLDERS = ("contracts", "definitions", "examples/podcast", "fixtures", "schemas")
# Modules that take long to import; nobody should pay for them to be told how a command is called.
HEAVY = ("cryptography", "rich", "jsonschema_rs", "httpx2", "starlette", "uvicorn", "structlog", "orjson", "msgspec")

pytestmark = pytest.mark.xdist_group("packaging")


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def _run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1", "HOME": str(cwd)}
    env = {**os.environ, **quiet, **environment}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is shipped, as it is now: building needs no right to write in the checkout, and edits do not disturb it."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("src", *CONTRACT_FOLDERS):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    made = _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source), cwd=folder)
    assert made.returncode == 0, made.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed into a folder of its own, away from the checkout."""
    target = tmp_path_factory.mktemp("installed")
    (path,) = built.glob("*.whl")
    done = _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(path)),
        cwd=target,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target


def _path(installed: Path) -> str:
    """The installed package before everything else, and the dependencies that this interpreter has."""
    return os.pathsep.join([str(installed), *(entry for entry in sys.path if entry.endswith("site-packages"))])


def test_the_wheel_holds_every_contract_file_byte_for_byte_and_no_other(wheel: zipfile.ZipFile, source: Path) -> None:
    prefix = "redkey/_contracts/"
    shipped = {name.removeprefix(prefix): wheel.read(name) for name in wheel.namelist() if name.startswith(prefix)}
    wanted = {f"{top}/{name}": data for top in CONTRACT_FOLDERS for name, data in _files(source / top)}
    assert shipped.keys() == wanted.keys()
    assert [name for name in wanted if shipped[name] != wanted[name]] == []


def test_the_wheel_holds_all_of_the_package(wheel: zipfile.ZipFile, source: Path) -> None:
    names = set(wheel.namelist())
    for name, data in _files(source / "src" / "redkey"):
        assert f"redkey/{name}" in names
        assert wheel.read(f"redkey/{name}") == data
    assert "redkey/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]


def test_the_wheel_names_its_license_and_its_command(wheel: zipfile.ZipFile) -> None:
    (about,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    assert "License-Expression: Apache-2.0" in wheel.read(about).decode()
    (entry,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    assert "redkey = redkey.cli:main" in wheel.read(entry).decode()


def test_the_sdist_names_no_machine(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        for member in sdist.getmembers():
            assert not member.name.startswith(("/", "..")), member.name
            if member.isfile():
                content = sdist.extractfile(member)
                assert content is not None
                assert str(ROOT).encode() not in content.read() or str(ROOT) in ("/", "/usr"), member.name


def test_the_installed_command_validates_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    names = ("task-complete.valid.json", "task-complete.invalid-verification-fail.json")
    for name in names:
        (tmp_path / name).write_bytes((ROOT / "fixtures/agent-wire/v1.1" / name).read_bytes())
    where = _run(
        sys.executable,
        "-c",
        "import redkey; from redkey.wire import files; print(redkey.__file__); print(files.root())",
        cwd=tmp_path,
        PYTHONPATH=_path(installed),
    )
    assert where.stdout.splitlines() == [str(installed / "redkey/__init__.py"), str(installed / "redkey/_contracts")]
    command = str(installed / "bin" / "redkey")
    good = _run(command, "wire", "validate", "task-complete.valid.json", cwd=tmp_path, PYTHONPATH=_path(installed))
    assert (good.returncode, good.stdout, good.stderr) == (
        0,
        "task-complete.valid.json: valid Agent Wire 1.1 task.complete\n",
        "",
    )
    bad = _run(command, "wire", "validate", *names, cwd=tmp_path, PYTHONPATH=_path(installed))
    assert bad.returncode == 1
    assert "/payload/verification/mechanical: schema_const" in bad.stdout
    assert bad.stdout.endswith("1 valid, 1 invalid\n")


def test_every_shipped_fixture_can_be_checked_with_the_installed_command(installed: Path, tmp_path: Path) -> None:
    largest = installed / "redkey/_contracts/fixtures/agent-wire/v1.1/derived/largest.jsonl"
    command = str(installed / "bin" / "redkey")
    done = _run(command, "wire", "validate", "-q", str(largest), cwd=tmp_path, PYTHONPATH=_path(installed))
    assert done.returncode == 0
    assert done.stdout.endswith(" valid, 0 invalid\n")


def test_the_installed_demo_finds_its_plan(installed: Path, tmp_path: Path) -> None:
    check = "from redkey.cli.demo.cast import plan, players; print(plan()['name'], len(players(3, 1)))"
    found = _run(sys.executable, "-c", check, cwd=tmp_path, PYTHONPATH=_path(installed))
    assert found.stdout == "podcast-production 12\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_tells_how_it_is_called(name: str) -> None:
    module = importlib.import_module(f"redkey.cli.{COMMANDS[name][0]}")
    assert isinstance(module.command, click.Command)
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: main {name}")
    assert (module.command.help or "").strip()


# Prints which of the modules named on the command line a start of the command has imported.
IMPORTED = """
import sys
from redkey.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
print("imported:", *[name for name in sys.argv[1:] if name in sys.modules])
"""


def test_help_imports_nothing_heavy_and_lists_every_command(tmp_path: Path) -> None:
    result = _run(sys.executable, "-c", IMPORTED, *HEAVY, cwd=tmp_path)
    assert result.stdout.endswith("imported:\n")
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(line[:30])}", result.stdout, re.MULTILINE)


def test_importing_the_wire_layer_imports_nothing_heavy(tmp_path: Path) -> None:
    check = "import sys, redkey.wire; print(*[name for name in sys.argv[1:] if name in sys.modules])"
    assert _run(sys.executable, "-c", check, *HEAVY, cwd=tmp_path).stdout == "\n"


def test_help_is_answered_quickly_compared_to_an_interpreter_that_does_nothing(tmp_path: Path) -> None:
    def spent(code: str) -> float:
        began = time.perf_counter()
        assert _run(sys.executable, "-c", code, cwd=tmp_path).returncode == 0
        return time.perf_counter() - began

    # In turns, so that both meet the same load.
    rounds = [(spent("pass"), spent("from redkey.cli import main; main(['--help'])")) for _ in range(7)]
    nothing, help_ = (min(times) for times in zip(*rounds, strict=True))
    # Click alone takes three to four of these; a heavy import would take thirty.
    assert help_ < 20 * nothing


def test_the_wire_package_is_an_honest_table_of_contents() -> None:
    listed = re.findall(r"^    (\w+)  +\S", redkey.wire.__doc__ or "", re.MULTILINE)
    there = [module.name for module in pkgutil.iter_modules(redkey.wire.__path__)]
    assert sorted(listed) == sorted(there)
    assert [name for name in vars(redkey.wire) if not name.startswith("__") and name not in there] == []
