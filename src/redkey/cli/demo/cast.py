"""The cast of the demo: guests, roles, and agents with their cards. The same seed gives the same names and times."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from redkey.wire import files

PLAN = "examples/podcast/plan.json"
QUEUE = "podcast"
GUESTS = ("Piers Gorman", "Ada Chen", "Tomas Varga", "Lena Okafor", "Ravi Menon", "Iris Novak")
# fmt: off
_NAMES = (
    "Abel", "Bo", "Cleo", "Dee", "Eli", "Fay", "Gus", "Hana", "Ida", "Jo", "Kit", "Lux", "Mara", "Nil", "Oda", "Pia",
    "Quin", "Rex", "Sol", "Tess", "Uma", "Vera", "Wes", "Xan", "Yara", "Zoe", "Arlo", "Bea", "Cruz", "Dov", "Fox",
)
# fmt: on
# The bounds of a task's duration: long enough to be seen, short enough for a minute.
_SECONDS = (0.7, 1.6)


@dataclass(frozen=True, slots=True)
class Player:
    """An agent before it is registered."""

    name: str
    role: str
    capabilities: tuple[str, ...]

    @property
    def card(self) -> dict[str, Any]:
        """Its A2A Agent Card."""
        skills = [{"id": one, "name": one, "description": one, "tags": [one]} for one in self.capabilities]
        return {
            "name": self.name,
            "description": f"A {self.role} of the demo",
            "url": f"https://{self.name.lower()}.example/a2a",
            "version": "1.0.0",
            "capabilities": {},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": skills,
        }


def plan() -> dict[str, Any]:
    """The podcast plan: intake, research, draft, review and an approval."""
    found: dict[str, Any] = files.load(PLAN)
    return found


def players(agents: int, seed: int) -> list[Player]:
    """Return this number of agents for each role, each with the capabilities that the plan requires of the role."""
    tasks, names = plan()["tasks"], list(_NAMES)
    random.Random(seed).shuffle(names)  # noqa: S311 (names, not secrets)
    found = []
    for role in plan()["roles"]:
        asked = [one for task in tasks if task["role"] == role for one in task.get("requiredCapabilities", ())]
        for _ in range(agents):
            found.append(Player(names.pop(), role, tuple(dict.fromkeys(asked))))
    return found


def seconds_for(seed: int, name: str, title: str) -> float:
    """Return how long an agent works on a task."""
    return random.Random(f"{seed} {name} {title}").uniform(*_SECONDS)  # noqa: S311 (a pace, not a secret)
