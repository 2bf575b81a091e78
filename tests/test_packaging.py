"""What is shipped: two wheels from their sdists, the command from outside the checkout, and how light its start is."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import httpx2 as httpx
import pytest
from click.testing import CliRunner

import redkey.wire
from redkey.cli import COMMANDS, main
from tests.harness.environments import Environment, copy_tree
from tests.harness.server import serving

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
    return copy_tree(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both sdists, and the wheels that were built from them."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (source / "sdk" / "python", source):
        made = _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(project), cwd=folder)
        assert made.returncode == 0, made.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def wheels(built: Path) -> dict[str, Path]:
    """The wheels by distribution."""
    return {path.name.split("-")[0]: path for path in built.glob("*.whl")}


@pytest.fixture(scope="module")
def contents(wheels: dict[str, Path]) -> dict[str, dict[str, bytes]]:
    """Distribution -> name -> bytes, of what is installed beside the metadata."""
    found = {}
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as opened:
            found[name] = {file: opened.read(file) for file in opened.namelist() if ".dist-info/" not in file}
    return found


@pytest.fixture(scope="module")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both wheels, installed into a folder of its own, away from the checkout."""
    target = tmp_path_factory.mktemp("installed")
    done = _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)),
        *map(str, wheels.values()),
        cwd=target,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target


def _path(installed: Path) -> str:
    """The installed package before everything else, and the dependencies that this interpreter has."""
    return os.pathsep.join([str(installed), *(entry for entry in sys.path if entry.endswith("site-packages"))])


def test_no_file_is_in_both_wheels_and_together_they_are_the_whole_tree(
    contents: dict[str, dict[str, bytes]], source: Path
) -> None:
    client, server = contents["redkey_client"], contents["redkey"]
    assert client.keys() & server.keys() == set()
    wanted = {f"redkey/{name}": data for name, data in _files(source / "src" / "redkey")}
    for top in CONTRACT_FOLDERS:
        wanted |= {f"redkey/_contracts/{top}/{name}": data for name, data in _files(source / top)}
    shipped = client | server
    assert shipped.keys() == wanted.keys()
    assert [name for name in wanted if shipped[name] != wanted[name]] == []


def test_packages_are_whole_in_one_wheel(contents: dict[str, dict[str, bytes]]) -> None:
    def packages(distribution: str) -> set[str]:
        return {name.split("/")[1] for name in contents[distribution]}

    assert packages("redkey_client") & packages("redkey") == {"_contracts"}
    assert {"client", "adapters", "wire", "shapes", "errors.py", "__init__.py"} <= packages("redkey_client")
    assert {"cli", "services", "runner", "__main__.py"} <= packages("redkey")


def test_the_wheels_name_their_license_version_and_command_and_no_address(wheels: dict[str, Path]) -> None:
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as wheel:
            (about,) = (file for file in wheel.namelist() if file.endswith(".dist-info/METADATA"))
            metadata = wheel.read(about).decode()
            scripts = [file for file in wheel.namelist() if file.endswith(".dist-info/entry_points.txt")]
            assert "License-Expression: Apache-2.0" in metadata
            # No address is named that is not known to answer.
            assert "\nProject-URL:" not in metadata
            assert "\nHome-page:" not in metadata
            # An index page has nothing beside it that a link of the checkout would lead to.
            description = metadata.partition("\n\n")[2]
            assert "RedKey()" in description
            assert re.findall(r"\]\(([^)]*)\)|(https?://\S+)", description) == []
            assert f"\nVersion: {redkey.__version__}\n" in metadata
            if name == "redkey":
                # `uvx redkey demo` and `pipx run redkey demo` run the script of the distribution's name.
                assert "redkey = redkey.cli:main" in wheel.read(scripts[0]).decode()
                assert f"Requires-Dist: redkey-client=={redkey.__version__}\n" in metadata
            else:
                assert scripts == []


WORKER = """
import sys
from redkey.client import RedKey
import redkey.adapters.crewai, redkey.adapters.langgraph, redkey.ledger.verify, redkey.wire.validate
rk = RedKey(sys.argv[1], sys.argv[2])
rk.queues.create("work")
task = rk.tasks.create("work", title="Alone", input={"guest": "Piers"}).task_id

@rk.worker(queue="work")
def research(ctx):
    rk.stop()
    return {"facts": [ctx.input["guest"]]}

rk.run()
print(rk.tasks.get(task).state)
try:
    import redkey.cli
except ModuleNotFoundError as missing:
    print(missing.name)
"""


def test_the_client_alone_works_against_a_server_of_another_environment(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    alone = Environment(tmp_path / "alone", wheels["redkey_client"])
    whole = Environment(tmp_path / "whole", wheels["redkey_client"], wheels["redkey"])
    assert not (alone.packages / "click").exists()
    with serving(tmp_path, python=[str(whole.python)], environment={"PYTHONPATH": ""}) as server:
        done = _run(str(alone.python), "-c", WORKER, server.url, server.key, cwd=tmp_path, PYTHONPATH="")
    assert (done.stdout.split(), done.returncode) == (["completed", "redkey.cli"], 0), done.stderr[-2000:]


@pytest.mark.skipif(os.environ.get("REDKEY_TEST_LONG") != "1", reason="asks the package index; REDKEY_TEST_LONG=1")
@pytest.mark.parametrize("version", ["lowest", "beside CrewAI"])
def test_the_client_installs_from_the_index(wheels: dict[str, Path], tmp_path: Path, version: str) -> None:
    """With the lowest versions that its metadata allows, and in one environment with CrewAI."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    project = tomllib.loads((ROOT / "sdk" / "python" / "pyproject.toml").read_text())["project"]
    lowest = [line.replace(">=", "==") for line in project["dependencies"]]
    wanted = lowest if version == "lowest" else project["optional-dependencies"]["crewai"]
    install = [python, "-m", "pip", "install", "--quiet", str(wheels["redkey_client"]), *wanted]
    subprocess.run(install, check=True, timeout=900)
    assert subprocess.run([python, "-m", "pip", "check"], check=False, timeout=300).returncode == 0
    with serving(tmp_path) as server:
        done = _run(python, "-c", WORKER, server.url, server.key, cwd=tmp_path, PYTHONPATH="")
    assert (done.stdout.split(), done.returncode) == (["completed", "redkey.cli"], 0), done.stderr[-2000:]


def test_the_lock_of_running_is_a_part_of_the_lock_of_development() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^([\w.-]+==[\w.]+)", (ROOT / name).read_text(), re.MULTILINE))

    running, development = pins("requirements-run.lock"), pins("requirements.lock")
    assert running < development
    names = {pin.partition("==")[0] for pin in running}
    both = [ROOT / "pyproject.toml", ROOT / "sdk" / "python" / "pyproject.toml"]
    for wanted in (line for path in both for line in tomllib.loads(path.read_text())["project"]["dependencies"]):
        assert re.match(r"[\w-]+", wanted)[0] in names | {"redkey-client"}  # type: ignore[index]


def test_the_sdist_names_no_machine(built: Path) -> None:
    paths = list(built.glob("*.tar.gz"))
    assert len(paths) == 2
    for path in paths:
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


def test_the_installed_server_has_its_page(
    installed: Path, contents: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    """Without Node, and without the sources of the Studio."""
    with serving(tmp_path, environment={"PYTHONPATH": _path(installed)}) as server:
        page = httpx.get(f"{server.url}/studio/")
        assert page.status_code == 200
        script = page.text.partition('src="./')[2].partition('"')[0]
        found = httpx.get(f"{server.url}/studio/{script}")
    assert found.content == contents["redkey"][f"redkey/studio/assets/{script}"]


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
