"""`redkey plan`: validate plans, show their shape, and simulate them before you pay for a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from redkey.cli.documents import FILE, check_documents, decode_document, documents
from redkey.cli.report import print_json, report, shown
from redkey.errors import Finding, JsonRefused
from redkey.plans.graph import critical_path, levels
from redkey.plans.model import Plan, read_plan
from redkey.plans.validate import BYTES_LIMIT, validate
from redkey.wire.names import role_id

# The number of levels drawn at the top and at the bottom, of tasks in each, and of dependencies of a task.
_LEVELS_SHOWN = 20
_TASKS_SHOWN = 12
_NAMES_SHOWN = 6
_AGENTS_LIMIT = 10_000
_SECONDS_LIMIT = 31_536_000


@click.group()
def command() -> None:
    """Validate, show and simulate plans."""


@command.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object {file, valid, errors, warnings} per plan.")
@click.pass_context
def validate_command(ctx: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Validate plans: errors and warnings.

    Each FILE is a plan.json; `-` reads standard input. Warnings are advice. Exit 0 when every plan is valid, 1 when
    one is not, 2 for wrong use.
    """
    if as_json:
        ctx.exit(0 if _validate_as_json(files) else 1)

    def check(value: Any) -> tuple[str, Iterable[Finding]]:
        found = validate(value)
        return "plan", (*found.errors, *found.warnings)

    ctx.exit(0 if report(check_documents(files, check, size_limit=BYTES_LIMIT), as_json=False) else 1)


def _validate_as_json(files: tuple[str, ...]) -> bool:
    good = True
    for name, data in documents(files, BYTES_LIMIT):
        try:
            told = validate(decode_document(data, BYTES_LIMIT)).as_json()
        except JsonRefused as refused:
            wrong = [{"code": one.code, "path": one.pointer, "message": one.message} for one in refused.findings()]
            told = {"valid": False, "errors": wrong, "warnings": []}
        good = good and told["valid"]
        print_json({"file": name, **told})
    return good


@command.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def show(file: str, as_json: bool) -> None:
    """Draw a plan: its levels, its critical path, and how much of it can run at once."""
    plan = read_plan(_valid(file))
    places = {task.id: place for place, task in enumerate(plan.tasks)}
    upstream = [[places[key] for key in task.depends_on] for task in plan.tasks]
    by_level = levels(upstream)
    path = critical_path(upstream, [1.0] * len(upstream))
    if as_json:
        print_json(
            {
                "name": plan.name,
                "tasks": len(plan.tasks),
                "levels": [[plan.tasks[place].id for place in level] for level in by_level],
                "criticalPath": [plan.tasks[place].id for place in path],
                "tasksALevel": round(len(plan.tasks) / len(by_level), 2),
                "widestLevel": max(map(len, by_level)),
                "maxParallelTasks": plan.policies.max_parallel_tasks,
            }
        )
        return
    click.echo(f"{click.style(shown(plan.name), bold=True)}: {_count(len(plan.tasks), 'task')}\n")
    hidden = len(by_level) - 2 * _LEVELS_SHOWN
    for number, level in enumerate(by_level, 1):
        if hidden <= 0 or not _LEVELS_SHOWN < number <= len(by_level) - _LEVELS_SHOWN:
            _draw_level(plan, number, level, set(path))
        elif number == _LEVELS_SHOWN + 1:
            click.echo(f"   ... {hidden:,} more levels ...")
    _draw_figures(plan, by_level, path)


def _draw_level(plan: Plan, number: int, level: list[int], path: set[int]) -> None:
    # Tasks on the critical path are drawn first, so that they are never cut off.
    ordered = sorted(level, key=lambda place: (place not in path, place))
    drawn, rest = ordered[:_TASKS_SHOWN], ordered[_TASKS_SHOWN:]
    for index, place in enumerate(drawn):
        last = index == len(drawn) - 1 and not rest
        arm = ("──" if len(ordered) == 1 else "┬─") if index == 0 else ("└─" if last else "├─")
        head = f"{number:>4} ─{arm}" if index == 0 else f"      {arm}"
        click.echo(f"{head} {_line(plan, place, place in path)}")
    if rest:
        click.echo(f"      └─ and {len(rest):,} more")


def _line(plan: Plan, place: int, critical: bool) -> str:
    task = plan.tasks[place]
    name = click.style(f"● {task.id}", fg="yellow", bold=True) if critical else f"○ {task.id}"
    parts = [name, click.style(role_id(task.role).removeprefix("role_"), dim=True)]
    if task.approval_gate:
        parts.append(click.style("◇ gate", fg="cyan"))
    if task.depends_on:
        named, more = task.depends_on[:_NAMES_SHOWN], len(task.depends_on) - _NAMES_SHOWN
        parts.append("← " + ", ".join(named) + (f" and {more} more" if more > 0 else ""))
    return "  ".join(parts)


def _draw_figures(plan: Plan, by_level: list[list[int]], path: list[int]) -> None:
    names = [plan.tasks[place].id for place in path]
    if len(names) > _TASKS_SHOWN:
        names[_TASKS_SHOWN // 2 : -_TASKS_SHOWN // 2] = [f"... {len(names) - _TASKS_SHOWN:,} more ..."]
    average, widest = len(plan.tasks) / len(by_level), max(map(len, by_level))
    click.echo(f"\ncritical path  {' → '.join(names)}  ({len(path):,} of {_count(len(plan.tasks), 'task')})")
    breadth = f"{average:.1f} tasks a level on {_count(len(by_level), 'level')}, at most {widest:,} on one"
    click.echo(f"parallelism    {breadth}; the plan lets {plan.policies.max_parallel_tasks:,} run at once")


@command.command()
@click.argument("file", metavar="FILE", type=FILE)
@click.option("--agents", multiple=True, metavar="ROLE=N,...", help="How many agents have a role [1].")
@click.option("--seconds", multiple=True, metavar="TASK=S,...", help="How long a task takes.")
@click.option("--each", type=click.FloatRange(0, _SECONDS_LIMIT), default=60.0, show_default=True, help="Other tasks.")
@click.option(
    "--gate", type=click.FloatRange(0, _SECONDS_LIMIT), default=0.0, show_default=True, help="Seconds to an approval."
)
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.pass_context
def simulate(
    ctx: click.Context,
    file: str,
    agents: tuple[str, ...],
    seconds: tuple[str, ...],
    each: float,
    gate: float,
    as_json: bool,
) -> None:
    """Run a plan in memory under a simulated clock: the duration, the busy agents, and who waits for whom.

    The same code decides what opens when as in a real run. Exit 0 when the plan finishes, 1 when it cannot.
    """
    from redkey.services.simulation import Assumptions, SimulatedClock
    from redkey.services.simulation import simulate as run
    from redkey.stores.opening import open_memory

    value = _valid(file)
    plan = read_plan(value)
    named = [text.partition("=") for text in _parts(agents)]
    workers = _numbers("--agents", [(role_id(name), n) for name, _, n in named], set(plan.roles_by_id()), _AGENTS_LIMIT)
    given = [text.partition("=") for text in _parts(seconds)]
    durations = _numbers(
        "--seconds", [(name, n) for name, _, n in given], {one.id for one in plan.tasks}, _SECONDS_LIMIT
    )
    if any(count != int(count) for count in workers.values()):
        raise click.BadParameter("agents are whole", param_hint="--agents")
    assumed = Assumptions({name: int(count) for name, count in workers.items()}, durations, each, gate)
    clock = SimulatedClock()
    found = run(value, assumed, open_memory(clock), clock)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        _draw_simulation(plan, found)
    ctx.exit(0 if found.finished else 1)


def _draw_simulation(plan: Plan, found: Any) -> None:
    state = "finishes" if found.finished else click.style("does not finish", fg="red")
    click.echo(f"{click.style(shown(plan.name), bold=True)} {state} after {_duration(found.makespan_seconds)}")
    if found.left:
        names = ", ".join(found.left[:_NAMES_SHOWN]) + (" ..." if len(found.left) > _NAMES_SHOWN else "")
        click.echo(f"left undone    {_count(len(found.left), 'task')}: {names}")
    path = found.critical_path[:_TASKS_SHOWN] + (["..."] if len(found.critical_path) > _TASKS_SHOWN else [])
    click.echo(f"critical path  {' → '.join(path)}  ({_duration(found.critical_path_seconds)})")
    click.echo(f"at work        at most {found.most_at_work:,} at once")
    if found.waited_for_room_seconds:
        room = _duration(found.waited_for_room_seconds)
        click.echo(f"for room       tasks waited {room} in all, because maxParallelTasks is reached")
    click.echo(f"\n{'role':<28}{'agents':>7}{'tasks':>7}{'busy':>8}{'waited':>12}{'longest':>12}{'most':>6}")
    for name, role in found.roles.items():
        mark = click.style("  ← bottleneck", fg="yellow") if name == found.bottleneck else ""
        waits = f"{_duration(role.waited_seconds):>12}{_duration(role.longest_wait_seconds):>12}{role.most_waiting:>6}"
        click.echo(
            f"{name.removeprefix('role_'):<28}{role.agents:>7}{role.tasks:>7}{role.utilisation:>8.0%}{waits}{mark}"
        )


def _valid(file: str) -> dict[str, Any]:
    """Return the plan in a file; errors in it end the command."""
    name, data = next(documents([file], BYTES_LIMIT))
    try:
        value = decode_document(data, BYTES_LIMIT)
    except JsonRefused as refused:
        raise click.ClickException(f"{name}: {shown(refused.message)} [{refused.code}]") from refused
    errors = validate(value).errors
    if errors:
        more = f" (and {len(errors) - 1} more; see `redkey plan validate`)" if len(errors) > 1 else ""
        raise click.ClickException(
            f"{name}: {errors[0].pointer or '/'}: {shown(errors[0].message)} [{errors[0].code}]{more}"
        )
    plan: dict[str, Any] = value
    return plan


def _parts(given: tuple[str, ...]) -> list[str]:
    """Split the comma-separated values of an option that may be repeated."""
    return [part.strip() for text in given for part in text.split(",") if part.strip()]


def _numbers(option: str, given: list[tuple[str, str]], known: set[str], most: int) -> dict[str, float]:
    """Parse names with numbers; a name that the plan does not have is a usage error."""
    found: dict[str, float] = {}
    for name, text in given:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number <= most:
            raise click.BadParameter(f"{name}={text} is not a number from 0 to {most:,}", param_hint=option)
        if name not in known:
            raise click.BadParameter(f"the plan has no {name}", param_hint=option)
        found[name] = number
    return found


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    """Format seconds for people: `1h 20m`, `45s`."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours:,}h {minutes:02d}m"
    return f"{minutes}m {whole % 60:02d}s" if minutes else f"{seconds:.3g}s"
