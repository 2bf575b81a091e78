"""The settings of an agent: options of `redkey run`, or a fleet file of several agents.

A fleet file is TOML: a table `defaults`, and a table `[agents.NAME]` for each agent, which overrides the defaults.
Unknown settings are refused, because a misspelt limit has no effect. Paths are relative to the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from redkey.errors import ConfigRefused, JsonRefused, RedKeyError
from redkey.runner.accounts import account_of
from redkey.runner.agent import Agent, Habits
from redkey.runner.contracts import Contracts
from redkey.runner.cost import PriceTable, price_table
from redkey.runner.evaluate import CommandEvaluator, Evaluator
from redkey.runner.executors.choose import choose, model_of, sandbox_of
from redkey.runner.executors.command import placed_command
from redkey.runner.logs import KEEP_DAYS, Logs
from redkey.runner.memory.opening import open_memories
from redkey.runner.merging import Merging, read_checks
from redkey.runner.pausing import Pauses
from redkey.runner.process import Limits
from redkey.runner.repositories import check_repositories, landing_branch
from redkey.runner.skills import SHARED, resolve
from redkey.runner.spending import Caps, Spending
from redkey.runner.workplace import Workplace
from redkey.wire import files
from redkey.wire.card import AgentCard, read_card
from redkey.wire.decode import decode
from redkey.wire.lint import lint_card, lint_output_types

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
EXECUTORS = ("exec", "python", "claude-code", "codex", "gemini", "anthropic", "openai", "a2a")
CODING = frozenset({"claude-code", "codex", "gemini"})
_CODER = "definitions/cards/coder.json"
_WITH_VALUE = ("exec", "python", "openai", "a2a")
_PATHS = ("card", "persona", "work", "workdir", "prices")
_PATH_LISTS = ("skills_dirs", "contracts_dirs", "python_path", "sandbox_write")


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All settings of one agent: identity, queue, executor, limits."""

    queue: str = "default"
    # An Agent Card; or a prose file for an agent without a card, which then needs a name. A coding agent has the card
    # that ships, unless another one is given.
    card: str | None = None
    persona: str | None = None
    name: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._-]{0,31}$")] | None = None
    roles: tuple[str, ...] = ()
    # The executor: exactly one of these; or several, listed in `executor`: the first available one is used.
    exec: str | tuple[str, ...] | None = None
    python: str | None = None
    claude_code: bool = False
    codex: bool = False
    gemini: bool = False
    anthropic: bool = False
    openai: str | None = None
    a2a: str | None = None
    # Headers for the remote agent, `NAME: VALUE`; and a token endpoint, with the client in the variables
    # A2A_CLIENT_ID and A2A_CLIENT_SECRET.
    a2a_headers: tuple[str, ...] = ()
    a2a_oauth: str | None = None
    executor: tuple[str, ...] = ()
    # The account whose usage limits it shares; by default the key or login of its executor.
    account: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._-]{0,31}$")] | None = None
    python_path: tuple[str, ...] = ()
    # Prefixes of commands that a model may run.
    allowed: tuple[str, ...] = ()
    # Cost cap in US dollars: for one task, or by scope.
    max_cost: Caps | None = None
    # A program, or anthropic:MODEL.
    evaluator: str | None = None
    skills: tuple[str, ...] = ()
    skills_dirs: tuple[str, ...] = ()
    shared_skills: tuple[str, ...] = SHARED
    contracts_dirs: tuple[str, ...] = ()
    prices: str | None = None
    # The directory for working directories, clones and memories; and one working directory shared by all tasks.
    work: str = ".redkey/runner"
    workdir: str | None = None
    # Prefixes of repository URLs that briefs may name; without one there are no worktrees.
    repositories: tuple[str, ...] = ()
    # Commands that the work must pass, `NAME=COMMAND`; then work in worktrees is merged into a branch, or pushed.
    checks: tuple[str, ...] = ()
    merge_into: str | None = None
    push: bool = False
    # Create worktrees in the local clone that `repositories` names, not in a clone under `work`.
    own_clone: bool = False
    # A sandbox without or with network access; further writable directories; and an image to run in containers.
    sandbox: Literal["offline", "online"] | None = None
    sandbox_write: tuple[str, ...] = ()
    sandbox_image: str | None = None
    # Days that logs and files of failed and blocked attempts are kept.
    keep_days: Annotated[float, msgspec.Meta(ge=0)] = KEEP_DAYS
    # Names of further environment variables for the agent's program.
    env: tuple[str, ...] = ()
    memory: Annotated[str, msgspec.Meta(pattern="^(auto|words|off)$")] = "auto"
    # A PostgreSQL for memories that several machines share (default: a file under `work`); and the least cosine
    # similarity of a recalled memory (default: the embedder's own).
    memory_store: Annotated[str, msgspec.Meta(pattern="^postgres(ql)?://")] | None = None
    memory_floor: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    tries: Count = 2
    concurrency: Count = 1
    lease_seconds: Annotated[int, msgspec.Meta(ge=5, le=86400)] = 60
    limit_seconds: Seconds = 3600.0
    limit_output_bytes: Count = 16 * 1024 * 1024
    grace_seconds: Seconds = 5.0
    budget_tokens: Count | None = None
    inbox_seconds: Seconds = 15.0

    def __post_init__(self) -> None:
        unknown = [name for name in self.executor if name not in EXECUTORS]
        if unknown:
            text = f"there is no executor {unknown[0]!r}; known: {', '.join(EXECUTORS)}"
            raise ConfigRefused(text, code="executor_missing")
        needed = [name for name in self.executor if name in _WITH_VALUE and self._setting(name) is None]
        if needed:
            raise ConfigRefused(f"the executor {needed[0]} needs its setting {needed[0]}", code="executor_missing")
        if not self.executor and len(self.called) != 1:
            text = f"an agent is called by one of {', '.join(EXECUTORS)}; name several in `executor`, the best first"
            raise ConfigRefused(text, code="executor_missing")
        if (self.merge_into or self.push or self.own_clone) and not self.repositories:
            text = "to merge, push or use your own clone, name the repository: --repo"
            raise ConfigRefused(text, code="repository_missing")
        if (self.card and self.persona) or not (self.card or self.persona or self.is_coding):
            text = "an agent has a card, or a persona where it has none yet: give --card or --persona"
            raise ConfigRefused(text, code="identity_missing")
        if self.persona is not None and self.name is None:
            raise ConfigRefused("an agent with a persona needs a name", code="identity_missing")

    @property
    def is_coding(self) -> bool:
        """Whether every executor is the command line of a coding agent."""
        return CODING.issuperset(self.called)

    def _setting(self, name: str) -> Any:
        return getattr(self, name.replace("-", "_")) or None

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the executors, in the order they are tried."""
        return self.executor or tuple(name for name in EXECUTORS if self._setting(name) is not None)

    @property
    def limits(self) -> Limits:
        return Limits(
            seconds=self.limit_seconds, output_bytes=self.limit_output_bytes, grace_seconds=self.grace_seconds
        )


def read_spec(settings: Mapping[str, Any]) -> Spec:
    """Read the spec from a table of settings; ConfigRefused names the wrong setting."""
    try:
        return msgspec.convert(dict(settings), Spec)
    except msgspec.ValidationError as cause:
        raise ConfigRefused(f"the agent's settings are invalid: {cause}") from cause


def read_fleet(path: Path) -> dict[str, Spec]:
    """Read the agents of a fleet file, by name."""
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigRefused(f"{path} cannot be read: {cause}") from cause
    except tomllib.TOMLDecodeError as cause:
        raise ConfigRefused(f"{path} is not TOML: {cause}") from cause
    unknown = value.keys() - {"defaults", "agents"}
    agents = value.get("agents")
    if unknown or not isinstance(agents, dict) or not agents:
        raise ConfigRefused(f"{path}: a fleet file has only the tables [defaults] and [agents.NAME]")
    fleet: dict[str, Spec] = {}
    for name, settings in agents.items():
        try:
            fleet[name] = read_spec(_placed({**value.get("defaults", {}), **settings}, path.resolve().parent))
        except (ConfigRefused, TypeError) as refused:
            raise ConfigRefused(f"{path}: agents.{name}: {refused}") from refused
    return fleet


def _placed(settings: dict[str, Any], directory: Path) -> dict[str, Any]:
    for name in _PATHS:
        if isinstance(settings.get(name), str):
            settings[name] = str(directory / settings[name])
    has_files = settings.get("workdir") or settings.get("repositories")
    if isinstance(settings.get("exec"), str | list) and not has_files:
        settings["exec"] = placed_command(settings["exec"], directory)
    for name in _PATH_LISTS:
        if isinstance(settings.get(name), list):
            settings[name] = [str(directory / one) for one in settings[name]]
    return settings


def load_card(path: str | Path) -> AgentCard:
    """Read an Agent Card file."""
    try:
        return read_card(decode(Path(path).read_bytes()))
    except OSError as cause:
        raise ConfigRefused(f"{path} cannot be read: {cause.strerror}") from cause
    except (JsonRefused, RedKeyError) as refused:
        raise ConfigRefused(f"{path}: {refused.pointer or '/'}: {refused.message}", code=refused.code) from refused


def identity(spec: Spec) -> tuple[str, AgentCard | str]:
    """Return the agent's slug, and its card or persona."""
    if spec.persona is None:
        card = read_card(files.load(_CODER)) if spec.card is None else load_card(spec.card)
        return spec.name or card.identity.slug, card
    try:
        return spec.name or "", Path(spec.persona).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigRefused(f"{spec.persona} cannot be read: {cause}") from cause


def build(spec: Spec) -> Agent:
    """Build the agent of a spec; anything missing is reported now, not at the first task."""
    slug, who = identity(spec)
    contracts = Contracts([Path(place) for place in spec.contracts_dirs])
    check_card(who, contracts)
    prices = price_table(Path(spec.prices) if spec.prices else None)
    if spec.max_cost:
        _check_priced(spec, who, prices)
    check_repositories(spec.repositories)
    names = (*spec.skills, *spec.shared_skills)
    work = Path(spec.work)
    workplace = Workplace(
        work,
        repositories=spec.repositories,
        shared=Path(spec.workdir).resolve() if spec.workdir else None,
        own_clone=spec.own_clone,
    )
    called, executor = choose(spec, who)
    return Agent(
        slug=slug,
        identity=who,
        executor=executor,
        workplace=workplace,
        contracts=contracts,
        spending=Spending(work / "costs.sqlite", slug, prices, spec.max_cost),
        merging=Merging(
            work.resolve(),
            checks=read_checks(spec.checks),
            merge_into=landing_branch(spec),
            push=spec.push,
            pass_on=spec.env,
            sandbox=sandbox_of(spec),
        ),
        logs=Logs(work, keep_days=spec.keep_days),
        pauses=Pauses(work / "pauses", account_of(spec, called)),
        evaluator=_evaluator(spec),
        memories=open_memories(spec, work),
        skills=resolve(names, [Path(place) for place in spec.skills_dirs]),
        habits=Habits(tries=spec.tries, budget_tokens=spec.budget_tokens, inbox_seconds=spec.inbox_seconds),
    )


def check_card(who: AgentCard | str, contracts: Contracts) -> None:
    """Raise ConfigRefused if `redkey card lint` finds an error in the card."""
    if isinstance(who, str):
        return
    found = [*lint_card(who), *lint_output_types(who, frozenset(contract.slug for contract in contracts))]
    for finding in found:
        if finding.severity == "error":
            text = f"the card breaks a rule: {finding.pointer}: {finding.message}"
            raise ConfigRefused(text, code=finding.code)


def _check_priced(spec: Spec, who: AgentCard | str, prices: PriceTable) -> None:
    """Refuse a cost cap if the model has no price: the cap would never be reached. Claude Code reports its own cost."""
    by_price = {"codex", "gemini", "anthropic", "openai"}.intersection(spec.called)
    if by_price and not prices.knows(model_of(who)):
        text = f"--max-cost needs a price for {model_of(who)!r}: put it into a file for --prices"
        raise ConfigRefused(text, code="price_unknown")


def _evaluator(spec: Spec) -> Evaluator | None:
    if spec.evaluator is None:
        return None
    if spec.evaluator.startswith("anthropic:"):
        from redkey.runner.executors.anthropic import AnthropicEvaluator

        return AnthropicEvaluator(spec.evaluator.removeprefix("anthropic:"), patience_seconds=spec.lease_seconds)
    return CommandEvaluator(spec.evaluator, pass_on=spec.env)
