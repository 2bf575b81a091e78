"""Two machines share one queue: one server and two workers, each with its own home folder, key and agent.

    python examples/two_machines.py

Here the machines are two processes in separate folders; with real machines, only REDKEY_URL would differ. Each of the
twelve tasks is done once, by one of the workers.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from redkey.client import RedKey

TASKS = 12
WORKER = Path(__file__).with_name("python_worker.py")


def start_machine(rk: RedKey, name: str, folder: Path) -> subprocess.Popen[bytes]:
    """Create a folder, an agent and a key for one machine, and start the worker on it."""
    folder.mkdir()
    agent = rk.agents.register(
        card={"name": name, "description": f"The worker on {name}", "version": "1"}, issue_key=True
    )
    rk.roles.grant("researcher", agent.agent_id)
    given = {"REDKEY_URL": rk.settings.shown_url, "REDKEY_API_KEY": agent.api_key, "REDKEY_AGENT_ID": agent.agent_id}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), **given}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return subprocess.Popen([sys.executable, str(WORKER), "shared", "researcher"], cwd=folder, env=environment)


def main() -> None:
    rk = RedKey()
    rk.queues.create("shared")
    rk.roles.create("researcher")
    with tempfile.TemporaryDirectory() as place:
        machines = [start_machine(rk, name, Path(place) / name) for name in ("north", "south")]
        try:
            tasks = [
                rk.tasks.create("shared", title=f"Research guest {n}", input={"guest": f"guest {n}"})
                for n in range(TASKS)
            ]
            left = {task.task_id for task in tasks}
            for event in rk.events.follow(types="task.complete", queue="shared", after=0):
                left.discard(event.subject.id)
                if not left:
                    break
        finally:
            for machine in machines:
                machine.send_signal(signal.SIGTERM)
            for machine in machines:
                machine.wait()
    slugs = {agent.agent_id: agent.slug for agent in rk.agents.list()}
    done = Counter(slugs[rk.tasks.get(task.task_id).completed_by] for task in tasks)
    print(", ".join(f"{name} did {count}" for name, count in sorted(done.items())))
    print(f"{sum(done.values())} of {TASKS} tasks, each once")


if __name__ == "__main__":
    main()
