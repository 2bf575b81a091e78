"""The type checker knows every payload: a wrong key, or a type or command without a case, is an error of mypy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# (the module, its text, the planted text, mypy's expected message)
PLANTS = {
    "a wrong key": (
        "src/redkey/reducers/task.py",
        "p.lease_expires_at is not None",
        "p.lease_ends_at is not None",
        '"TaskClaimed" has no attribute "lease_ends_at"',
    ),
    "a key of another type": (
        "src/redkey/reducers/claim.py",
        "p.winning_claim_id, e.sequence",
        "p.detail, e.sequence",
        '"TaskClaimMissed" has no attribute "detail"',
    ),
    "a field that may be absent": (
        "src/redkey/reducers/gate.py",
        "p.ref_task_id or",
        "p.ref_task_id.lower() or",
        'Item "None" of "str | None" has no attribute "lower"',
    ),
    "a type without a case": (
        "src/redkey/reducers/fold.py",
        "    if type(p) is GateOpened:\n        return gate.opened(world, e, p)\n",
        "",
        'Argument 1 to "assert_never" has incompatible type "GateOpened"; expected "Never"',
    ),
    "a type of the registry without a case": (
        "src/redkey/reducers/fold.py",
        "    if type(p) is RoleGranted:\n        return agents.role_granted(world, e, p)\n",
        "",
        'Argument 1 to "assert_never" has incompatible type "RoleGranted"; expected "Never"',
    ),
    "a command without a case": (
        "src/redkey/commands/decide.py",
        "    if type(c) is tasks.RetryTask:\n        return tasks.retry(world, c, actor, now, ids, past)\n",
        "",
        'Argument 2 to "_decide_registry" has incompatible type "RetryTask | ',
    ),
    "a command of the registry without a case": (
        "src/redkey/commands/decide.py",
        "    if type(c) is registry.GrantRole:\n        return decide_agents.grant_role(world, c, actor, now, ids)\n",
        "",
        'Argument 1 to "assert_never" has incompatible type "GrantRole"; expected "Never"',
    ),
    "a wrong key in a decision": (
        "src/redkey/commands/holds.py",
        "plan_ref=command.plan_ref",
        "plan=command.plan_ref",
        'Unexpected keyword argument "plan" for "TaskPlanCreated"',
    ),
    "what follows from another type": (
        "src/redkey/reducers/fold.py",
        "task.moved(world, e, p, task.released)",
        "task.moved(world, e, p, task.blocked)",
        'Argument 4 to "moved" has incompatible type',
    ),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def _mypy(cache: Path, module: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(cache), *options, module]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("plant", PLANTS)
def test_mypy_names_what_is_planted(plant: str, cache: Path, tmp_path: Path) -> None:
    module, right, wrong, told = PLANTS[plant]
    text = (ROOT / module).read_text()
    assert right in text
    planted = tmp_path / "planted.py"
    planted.write_text(text.replace(right, wrong, 1))
    ran = _mypy(cache, module, "--shadow-file", module, str(planted))
    assert ran.returncode == 1, ran.stderr
    assert told in ran.stdout


def test_mypy_has_nothing_to_say_of_the_reducers_as_they_are(cache: Path) -> None:
    ran = _mypy(cache, "src/redkey/reducers/fold.py")
    assert ran.returncode == 0, ran.stdout


def _signatures(folder: str) -> Iterator[tuple[str, ast.expr]]:
    """Return every annotation of a parameter or result in a folder, with its place."""
    for path in sorted((ROOT / "src/redkey" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = node.args
                given = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
                found = [one.annotation for one in given if one is not None] + [node.returns]
                yield from ((f"{path.name}:{node.lineno} {node.name}", one) for one in found if one is not None)


@pytest.mark.parametrize("folder", ["commands", "reducers", "services"])
def test_no_signature_of_the_core_takes_or_gives_any(folder: str) -> None:
    """A JSON document is `dict[str, Any]`; everything else has a type."""
    found = list(_signatures(folder))
    assert len(found) > 100
    assert [place for place, annotation in found if ast.unparse(annotation) in ("Any", "Any | None")] == []
