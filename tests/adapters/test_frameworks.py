"""Recipes for frameworks, each in an environment of its own, with models that need no network.

The environments are large, so this runs in the long tests, which keep them in `.venv/frameworks`, and where
`REDKEY_TEST_FRAMEWORKS=DIR` names another directory. What is missing there is installed, in the versions below.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redkey.client import RedKey
from tests.harness.acts import until
from tests.harness.server import Server, serving

ROOT = Path(__file__).resolve().parents[2]
CHOSEN = os.environ.get("REDKEY_TEST_FRAMEWORKS", "")
LONG = os.environ.get("REDKEY_TEST_LONG") == "1"
VERSIONS = {
    "crewai": ["crewai==1.15.30"],
    "recipes": ["pydantic-ai-slim==2.66.0", "openai-agents==0.24.0", "dspy==3.4.1"],
}
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
pytestmark = [
    pytest.mark.skipif(
        not CHOSEN and not LONG, reason="long: REDKEY_TEST_LONG=1, or REDKEY_TEST_FRAMEWORKS=DIR, for 1 GB"
    ),
    # One worker of the tests installs them.
    pytest.mark.xdist_group("frameworks"),
]


def python_of(name: str) -> str:
    """The interpreter of an environment, which is installed unless that has succeeded before."""
    place = Path(CHOSEN or ROOT / ".venv" / "frameworks") / name
    python, installed = place / "bin" / "python", place / "installed"
    wanted = "\n".join([*VERSIONS[name], str(ROOT)])
    if not installed.exists() or installed.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        install = [str(python), "-m", "pip", "install", "-q", *VERSIONS[name], "-e", str(ROOT / "sdk/python")]
        ended = subprocess.run(install, check=False, capture_output=True, text=True)
        if ended.returncode and not CHOSEN:
            pytest.skip(f"{name} cannot be installed: {ended.stderr.strip().splitlines()[-1]}")
        assert ended.returncode == 0, ended.stderr
        installed.write_text(wanted)
    return str(python)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@contextmanager
def working(name: str, environment: str, queue: str, server: Server, folder: Path) -> Iterator[Path]:
    """A worker of a recipe on a queue, for the duration of a block; its log."""
    home, log = folder / "home", folder / "log"
    home.mkdir(exist_ok=True)
    known = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key, "HOME": str(home), "PATH": os.environ["PATH"]}
    command = [python_of(environment), str(ROOT / "examples" / "frameworks" / f"{name}_worker.py"), queue]
    with log.open("ab") as out:
        worker = subprocess.Popen(command, env={**known, **QUIET}, stdout=out, stderr=out, cwd=home)
    try:
        yield log
    except AssertionError:
        raise AssertionError(log.read_text()[-3000:]) from None
    finally:
        worker.terminate()
        worker.wait(60)


@pytest.mark.parametrize(
    ("name", "environment"),
    [("pydantic_ai", "recipes"), ("openai_agents", "recipes"), ("dspy", "recipes"), ("crewai", "crewai")],
)
def test_a_recipe_does_tasks(name: str, environment: str, server: Server, tmp_path: Path) -> None:
    with RedKey(server.url, server.key) as rk:
        queue = rk.queues.create(name.replace("_", "-")).queue_id
        outputs = ["facts"] if name == "crewai" else []
        tasks = [
            rk.tasks.create(queue, title="Research", input={"guest": f"g{number}"}, outputs=outputs).task_id
            for number in range(3)
        ]
        with working(name, environment, queue, server, tmp_path):
            until(lambda: all(rk.tasks.get(task_id).state == "completed" for task_id in tasks), 300)
        for task in map(rk.tasks.get, tasks):
            if name == "crewai":
                assert rk.content.get(task.artifacts[0].sha256) == b"Five facts."
                # One call each: the usage of the tasks before is not counted again.
                assert task.cost_usd == 0.000045
            else:
                assert task.output == {"text": "Five facts."}


def test_a_tool_of_a_crew_blocks_the_task_and_another_worker_gets_the_answer(server: Server, tmp_path: Path) -> None:
    with RedKey(server.url, server.key) as rk:
        queue = rk.queues.create("asking").queue_id
        task_id = rk.tasks.create(queue, title="Research", input={"guest": "nobody"}, outputs=["facts"]).task_id
        with working("crewai", "crewai", queue, server, tmp_path):
            until(lambda: rk.tasks.get(task_id).state == "blocked", 300)
        task = rk.tasks.get(task_id)
        # The model was called once: the tool has ended the crew. That call is counted.
        assert (task.blocker and task.blocker.reason, task.cost_usd) == ("Who is the guest?", 0.000045)
        rk.tasks.unblock(task_id, "Piers")
        with working("crewai", "crewai", queue, server, tmp_path):
            until(lambda: rk.tasks.get(task_id).state == "completed", 300)
        task = rk.tasks.get(task_id)
        assert rk.content.get(task.artifacts[0].sha256) == b"Five facts on Piers."
        assert task.cost_usd == 0.000135
