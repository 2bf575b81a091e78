"""Recipes for frameworks, each in an environment of its own, with models that need no network.

The environments are large, so this runs where `REDKEY_TEST_FRAMEWORKS=DIR` names a directory for them; what is missing
there is installed, in the versions below.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redkey.client import RedKey
from tests.harness.acts import until
from tests.harness.server import Server, serving

ROOT = Path(__file__).resolve().parents[2]
FOLDER = os.environ.get("REDKEY_TEST_FRAMEWORKS", "")
VERSIONS = {
    "crewai": ["crewai==1.15.30"],
    "recipes": ["pydantic-ai-slim==2.66.0", "openai-agents==0.24.0", "dspy==3.4.1"],
}
pytestmark = pytest.mark.skipif(not FOLDER, reason="opt-in: REDKEY_TEST_FRAMEWORKS=DIR, for environments of about 1 GB")


def python_of(name: str) -> str:
    """The interpreter of an environment, made when it is missing."""
    place = Path(FOLDER) / name
    if not (place / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        install = [str(place / "bin" / "pip"), "install", "-q", *VERSIONS[name], "-e", str(ROOT / "sdk/python")]
        subprocess.run(install, check=True)
    return str(place / "bin" / "python")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as running:
        yield running


@pytest.mark.parametrize(
    ("name", "environment"),
    [("pydantic_ai", "recipes"), ("openai_agents", "recipes"), ("dspy", "recipes"), ("crewai", "crewai")],
)
def test_a_recipe_does_tasks(name: str, environment: str, server: Server, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    quiet = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
    known = {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key, "HOME": str(home), "PATH": os.environ["PATH"]}
    with RedKey(server.url, server.key) as rk:
        rk.queues.create("work")
        outputs = ["facts"] if name == "crewai" else []
        tasks = [
            rk.tasks.create("work", title="Research", input={"guest": f"g{number}"}, outputs=outputs).task_id
            for number in range(3)
        ]
        command = [python_of(environment), str(ROOT / "examples" / "frameworks" / f"{name}_worker.py"), "work"]
        log = tmp_path / "log"
        with log.open("wb") as out:
            worker = subprocess.Popen(command, env={**known, **quiet}, stdout=out, stderr=out, cwd=home)
        try:
            until(lambda: all(rk.tasks.get(task_id).state == "completed" for task_id in tasks), 120)
        except AssertionError:
            raise AssertionError(log.read_text()[-3000:]) from None
        finally:
            worker.terminate()
            worker.wait(60)
        task = rk.tasks.get(tasks[0])
        if name == "crewai":
            assert rk.content.get(task.artifacts[0].sha256) == b"Five facts."
        else:
            assert task.output == {"text": "Five facts."}
