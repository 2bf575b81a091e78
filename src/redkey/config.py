"""Configuration: arguments win over `REDKEY_` variables, these over the TOML file, this over the defaults.

A variable is the name of a setting in capitals: `REDKEY_PORT`, and for the tables `REDKEY_LIMITS_BODY_BYTES`.
Unknown settings are refused, because a misspelt limit protects nobody.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from redkey.errors import ConfigRefused
from redkey.shapes.fields import BlockerType, BlockRoute

PREFIX = "REDKEY_"
DEFAULT_PORT = 8700
# Variables of the same prefix that are not settings of the server.
_OTHER_VARIABLES = frozenset(
    {
        *("BOOTSTRAP_KEY", "CONFIG", "URL", "API_KEY", "AGENT_ID", "TEST_LONG"),
        # What a runner's agent finds its step by; an agent may well start a server of its own.
        *("INPUT_FILE", "PROMPT_FILE", "OUTPUT_FILE", "OUTBOX_FILE", "USAGE_FILE"),
    }
)

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file: its settings and no others."""


class Limits(_Table, frozen=True):
    """What one request, page, stream or connection may take."""

    body_bytes: Count = 1024 * 1024
    plan_bytes: Count = 16 * 1024 * 1024
    content_bytes: Count = 1024 * 1024 * 1024
    # A body has this long, and a second more for each 16 KiB that has come.
    body_seconds: Seconds = 10.0
    # How long a connection may take to send the headers of a request.
    header_seconds: Seconds = 15.0
    connections: Count = 20_000
    # Connections of one address on which no valid key has been shown yet.
    strangers: Count = 4096
    subscribers: Count = 10_000
    # A caller that reads nothing of its answer for this long is cut; a follower resumes from its last event id.
    stalled_seconds: Seconds = 30.0
    # Followers get a bare cursor when nothing else came for this long.
    cursor_seconds: Seconds = 15.0
    # At most this many records are looked through for one page of a ledger query.
    query_records: Count = 20_000
    # How long a stop waits for requests that are being answered.
    stop_seconds: Seconds = 10.0


class Rate(_Table, frozen=True):
    """A token bucket per key; 0 a second means no limit."""

    per_second: Annotated[float, msgspec.Meta(ge=0)] = 0
    burst: Count = 100


class Cost(_Table, frozen=True):
    """How much large work is done for one key and for one workspace; 0 a second means no limit.

    A KiB of body beyond the first 64, and a task of a plan beyond the first 64, cost one unit each.
    """

    per_second: Annotated[float, msgspec.Meta(ge=0)] = 500
    burst: Count = 2000
    workspace_per_second: Annotated[float, msgspec.Meta(ge=0)] = 1000
    workspace_burst: Count = 4000


class Logins(Rate, frozen=True):
    """Failed logins that one address, or anybody for one client, may make; 0 a second means no limit."""

    per_second: Annotated[float, msgspec.Meta(ge=0)] = 5
    burst: Count = 100


class Cards(_Table, frozen=True):
    """Where Agent Cards may be fetched from, and whose signatures count."""

    # Loopback and private networks, and plain http: for development only.
    allow_private: bool = False
    # Ports beside 443.
    ports: tuple[int, ...] = ()
    # Files with pinned public keys (JWK sets) that verify card signatures.
    pinned_keys: tuple[str, ...] = ()


class Outbox(_Table, frozen=True):
    """Where webhooks and A2A push notifications may go, and how long a receiver is tried."""

    # Loopback and private networks, and plain http: for development only.
    allow_private: bool = False
    # Ports beside 443.
    ports: tuple[int, ...] = ()
    # Hosts that may be called, `.example.com` for all below one; any public host when empty.
    hosts: tuple[str, ...] = ()
    # The wait after the first failure; it doubles up to `longest_seconds`.
    retry_seconds: Seconds = 1.0
    longest_seconds: Seconds = 300.0
    # After so many failures in a row a receiver is parked until it is resumed.
    attempts: Count = 20
    # How long a receiver may take to answer.
    answer_seconds: Seconds = 5.0


class A2a(_Table, frozen=True):
    """How A2A clients reach this server."""

    # What the Agent Card says of this server.
    name: Annotated[str, msgspec.Meta(min_length=1)] = "RedKey"
    description: Annotated[str, msgspec.Meta(min_length=1)] = (
        "A shared, verified queue: takes tasks, gives each to one agent, and proves what happened."
    )
    # Roles of the first workspace that the public card lists as skills; the extended card lists all of the caller's.
    public_roles: tuple[str, ...] = ()
    # The queue of messages that name no tenant; it is created with the first of them.
    queue: Annotated[str, msgspec.Meta(min_length=1, max_length=32)] = "a2a"
    # Where gRPC listens, 0 for a free port; nowhere when absent.
    grpc_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None


class Witness(_Table, frozen=True):
    """Somebody who cosigns this log's checkpoints: where, and by which verifier key (`redkey witness init` prints it).

    `add-checkpoint` is asked for below the address, as C2SP tlog-witness says.
    """

    url: Annotated[str, msgspec.Meta(pattern="^https?://[^/]")]
    key: str


class Config(_Table, frozen=True):
    """Everything that `redkey serve` can be told."""

    data: Path = Path(".redkey")
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = DEFAULT_PORT
    uds: Path | None = None
    ready_file: Path | None = None
    # How receipts and tokens name this server to others; worked out from host and port when absent.
    public_url: str = ""
    log_format: Literal["auto", "json", "text"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # A line for each request.
    access_log: bool = False
    token_seconds: Annotated[int, msgspec.Meta(ge=60, le=86400)] = 900
    checkpoint_seconds: Seconds = 1.0
    checkpoint_records: Count = 1024
    # Tables of `url` and `key`: who is asked to cosign every checkpoint.
    witnesses: tuple[Witness, ...] = ()
    # How often they are asked, at most.
    witness_seconds: Seconds = 2.0
    idle_world_seconds: Seconds = 900.0
    # Whether /metrics answers without a key; its figures tell nothing of single workspaces.
    open_metrics: bool = True
    # blocker type -> roles that are told, as new workspaces get it; later the workspace's own policy says who is. What
    # is not named keeps its default. The supervisors are always told.
    block_routes: dict[BlockerType, BlockRoute] = {}
    limits: Limits = Limits()
    rate: Rate = Rate()
    cost: Cost = Cost()
    logins: Logins = Logins()
    cards: Cards = Cards()
    a2a: A2a = A2a()
    outbox: Outbox = Outbox()

    @property
    def new_block_routes(self) -> dict[str, tuple[str, ...]]:
        """The block routes that new workspaces get."""
        return {str(kind): roles for kind, roles in self.block_routes.items()}


CREDENTIALS = "credentials.json"


class Credentials(msgspec.Struct, frozen=True, rename="camel"):
    """What `redkey serve` leaves for the command line and SDKs, in a file that its owner alone can read."""

    url: str
    uds: str | None
    workspace_id: str
    api_key: str

    def __repr__(self) -> str:
        """Without the key: this may end in a log."""
        return f"Credentials(url={self.url!r}, uds={self.uds!r}, workspace_id={self.workspace_id!r})"


def read_credentials(data: Path) -> Credentials | None:
    """What an earlier `redkey serve` on this data directory left."""
    try:
        return msgspec.json.decode((data / CREDENTIALS).read_bytes(), type=Credentials)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


_TABLES: Mapping[str, type[_Table]] = {
    "limits": Limits,
    "rate": Rate,
    "cost": Cost,
    "logins": Logins,
    "cards": Cards,
    "a2a": A2a,
    "outbox": Outbox,
}


# A project's own settings, in the directory where `redkey` is run; `redkey init` writes it.
PROJECT_FILE = "redkey.toml"
_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


class Loaded(msgspec.Struct, frozen=True):
    """A configuration, and where each setting that is not a default comes from: an option, a variable or a file."""

    config: Config
    sources: dict[str, str]


def config_file(given: Path | None, environment: Mapping[str, str]) -> Path | None:
    """The file that settings come from: the given one, that of REDKEY_CONFIG, or redkey.toml of this directory."""
    if given is not None:
        return given
    if named := environment.get(PREFIX + "CONFIG"):
        return Path(named).expanduser()
    return Path(PROJECT_FILE) if Path(PROJECT_FILE).is_file() else None


def data_directory(given: str | Path | None, environment: Mapping[str, str]) -> Path:
    """The data directory that a client means: a given one, that of REDKEY_DATA or of the project's file, or .redkey."""
    found = given or environment.get(PREFIX + "DATA")
    if not found and (file := config_file(None, environment)) is not None:
        found = _read(file).get("data")
    return Path(found if isinstance(found, str | Path) else Config().data).expanduser()


def load(file: Path | None, environment: Mapping[str, str], arguments: Mapping[str, Any]) -> Config:
    """The configuration from a file, the environment and arguments; None among the arguments means not given."""
    return load_explained(file, environment, arguments).config


def load_explained(file: Path | None, environment: Mapping[str, str], arguments: Mapping[str, Any]) -> Loaded:
    """As `load`, with where each setting comes from."""
    settings = _read(file) if file is not None else {}
    sources: dict[str, str] = {}
    for name, value in settings.items():
        nested = value if name in _TABLES and isinstance(value, dict) else None
        sources.update({f"{name}.{part}": str(file) for part in nested} if nested is not None else {name: str(file)})
    for name, value in _variables(environment).items():
        table, _, rest = name.partition("_")
        if table in _TABLES and rest:
            before = settings.get(table)
            settings[table] = {**(before if isinstance(before, dict) else {}), rest: value}
            sources[f"{table}.{rest}"] = PREFIX + name.upper()
        else:
            settings[name] = value
            sources[name] = PREFIX + name.upper()
    for name, value in arguments.items():
        if value is not None:
            settings[name] = value
            sources[name] = "--" + name.replace("_", "-")
    _check_names(sources)
    try:
        return Loaded(msgspec.convert(settings, Config, strict=False, dec_hook=_path), sources)
    except msgspec.ValidationError as cause:
        raise ConfigRefused(_explain(str(cause), sources)) from cause


def setting_names() -> list[str]:
    """Every setting; those of a table with its name before them: `limits.body_bytes`."""
    top = [field.name for field in msgspec.structs.fields(Config) if field.name not in _TABLES]
    return top + [f"{name}.{field.name}" for name, table in _TABLES.items() for field in msgspec.structs.fields(table)]


def _check_names(sources: Mapping[str, str]) -> None:
    """Refuse a setting that does not exist, with the one that was probably meant."""
    known = setting_names()
    for name, source in sources.items():
        if name in known or name in _TABLES:
            continue
        is_variable = source.startswith(PREFIX)
        meant = next(iter(get_close_matches(name, known, cutoff=0.7)), None)
        shown = meant if meant is None or not is_variable else PREFIX + meant.replace(".", "_").upper()
        subject = source if is_variable else f"{source}: {name}"
        advice = f"did you mean {shown}?" if shown else "redkey config show lists all of them"
        raise ConfigRefused(f"{subject} is not a setting; {advice}", code="setting_unknown")


def _explain(message: str, sources: Mapping[str, str]) -> str:
    """What msgspec found wrong with a value, with the setting and where it comes from first."""
    found = _AT.search(message)
    if found is None:
        return f"the configuration is wrong: {message}"
    path = found["path"]
    name = next((one for one in sources if path == one or path.startswith((f"{one}.", f"{one}["))), path)
    source = sources.get(name, "")
    return f"{source}: {path}: {message[: found.start()]}" if source else f"{path}: {message[: found.start()]}"


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str | Path):
        return Path(value).expanduser()
    raise TypeError(f"expected a path, not {value!r}")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as cause:
        raise ConfigRefused(f"{file} cannot be read: {cause}") from cause
    except tomllib.TOMLDecodeError as cause:
        raise ConfigRefused(f"{file} is not TOML: {cause}") from cause


def _variables(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in environment.items():
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in _OTHER_VARIABLES:
            found[name.removeprefix(PREFIX).lower()] = value
    return found
