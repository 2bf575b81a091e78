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
        *("BOOTSTRAP_KEY", "CONFIG", "URL", "API_KEY", "AGENT_ID", "WORKER_LOG", "TEST_LONG"),
        *("STORE_KEY", "MEMORY_STORE"),
        # How a runner's agent finds its step; an agent may well start a server of its own.
        *("INPUT_FILE", "PROMPT_FILE", "OUTPUT_FILE", "OUTBOX_FILE", "USAGE_FILE"),
    }
)

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file: its settings and no others."""


class Limits(_Table, frozen=True):
    """Limits of one request, page, stream or connection."""

    body_bytes: Count = 1024 * 1024
    plan_bytes: Count = 16 * 1024 * 1024
    content_bytes: Count = 1024 * 1024 * 1024
    # The time for a body, plus a second for each 16 KiB that has arrived.
    body_seconds: Seconds = 10.0
    # How long a connection may take to send the headers of a request.
    header_seconds: Seconds = 15.0
    connections: Count = 20_000
    # Connections of one address that have not shown a valid key yet.
    strangers: Count = 4096
    subscribers: Count = 10_000
    # A caller that reads nothing of its response for this long is disconnected; a follower resumes from its last event
    # id.
    stalled_seconds: Seconds = 30.0
    # Followers get a cursor without an event when there was nothing else for this long.
    cursor_seconds: Seconds = 15.0
    # At most this many records are scanned for one page of a ledger query.
    query_records: Count = 20_000
    # How long a stop waits for requests that are being answered.
    stop_seconds: Seconds = 10.0


class Rate(_Table, frozen=True):
    """A token bucket per key; 0 a second means no limit."""

    per_second: Annotated[float, msgspec.Meta(ge=0)] = 0
    burst: Count = 100


class Cost(_Table, frozen=True):
    """How much large work one key and one workspace may request; 0 a second means no limit.

    A KiB of body beyond the first 64, and a task of a plan beyond the first 64, cost one unit each.
    """

    per_second: Annotated[float, msgspec.Meta(ge=0)] = 500
    burst: Count = 2000
    workspace_per_second: Annotated[float, msgspec.Meta(ge=0)] = 1000
    workspace_burst: Count = 4000


class Logins(Rate, frozen=True):
    """Failed logins allowed to one address, and to all addresses for one client; 0 a second means no limit."""

    per_second: Annotated[float, msgspec.Meta(ge=0)] = 5
    burst: Count = 100


class Login(_Table, frozen=True):
    """How people log in."""

    # A session ends after this time without use.
    session_days: Annotated[int, msgspec.Meta(ge=1, le=365)] = 30
    # How long a one-time code is valid.
    code_hours: Annotated[int, msgspec.Meta(ge=1, le=720)] = 72
    # A program that sends mail, such as `sendmail -t -i`: it gets a message with its headers. Without one, admins pass
    # the codes on.
    mail_command: str = ""
    mail_from: str = "RedKey <redkey@localhost>"


class Oidc(_Table, frozen=True):
    """An identity provider by which invited people may log in (OpenID Connect)."""

    # Its address, where /.well-known/openid-configuration is found; empty for no provider.
    issuer: Annotated[str, msgspec.Meta(pattern="^(https?://[^/?#]+[^?#]*)?$")] = ""
    client_id: str = ""
    # A file with the secret of this client; some providers need none.
    client_secret_file: Path | None = None
    # Its name on the login page.
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=60)] = "your identity provider"


class Signup(_Table, frozen=True):
    """Workspaces that anyone may create (POST /signup)."""

    enabled: bool = False
    # What a new workspace may spend.
    credits: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] = 1000
    # The limits of new workspaces for one address, and for all addresses together.
    per_hour: Count = 5
    all_per_hour: Count = 100


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
    # Hosts that may be called, `.example.com` for all its subdomains; any public host if empty.
    hosts: tuple[str, ...] = ()
    # The wait after the first failure; it doubles up to `longest_seconds`.
    retry_seconds: Seconds = 1.0
    longest_seconds: Seconds = 300.0
    # A receiver is parked after this many failures in a row, until it is resumed.
    attempts: Count = 20
    # How long a receiver may take to answer.
    answer_seconds: Seconds = 5.0


class A2a(_Table, frozen=True):
    """How A2A clients reach this server."""

    # The description of this server in the Agent Card.
    name: Annotated[str, msgspec.Meta(min_length=1)] = "RedKey"
    description: Annotated[str, msgspec.Meta(min_length=1)] = (
        "A shared, verified queue: takes tasks, gives each to one agent, and proves what happened."
    )
    # Roles of the first workspace that the public card lists as skills; the extended card lists all of the caller's.
    public_roles: tuple[str, ...] = ()
    # The queue for messages that name no tenant; it is created with the first of them.
    queue: Annotated[str, msgspec.Meta(min_length=1, max_length=32)] = "a2a"
    # Where gRPC listens, 0 for a free port; not served if absent.
    grpc_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None


class Peer(_Table, frozen=True):
    """Another organisation's server, and the file with a key of it that may read a shared workspace."""

    url: Annotated[str, msgspec.Meta(pattern="^https?://[^/]")]
    key_file: Path


class Hedera(_Table, frozen=True):
    """A Hedera network that anchors checkpoints and orders workspaces; no secret is a setting, only its file."""

    # No network when absent; `local` is a network at `nodes` and `mirror_url`, such as that of `redkey hedera standin`.
    network: Literal["mainnet", "testnet", "previewnet", "local"] | None = None
    # The account that pays, and the file with its private key, which only its owner may read.
    operator: Annotated[str, msgspec.Meta(pattern=r"^(\d+\.\d+\.\d+)?$")] = ""
    key_file: Path | None = None
    # The topic that checkpoints are submitted to, without which none is; `redkey hedera topic create` creates one.
    topic: Annotated[str, msgspec.Meta(pattern=r"^(\d+\.\d+\.\d+)?$")] = ""
    # A workspace with new records is anchored at most this often.
    anchor_seconds: Seconds = 60.0
    # The budgets of each workspace for fees in an hour and in a day (UTC), in dollars; anchoring waits when one is used
    # up, and requests to a workspace that the network orders are refused.
    budget_usd_per_hour: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    budget_usd_per_day: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    # The highest fee of one message, and the highest custom fee of a topic (HIP-991).
    max_fee_usd: Annotated[float, msgspec.Meta(gt=0)] = 0.01
    max_custom_fee_usd: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    # Warn if the account has less.
    low_balance_hbar: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    # A folder with the submit keys of topics that others own: a file 0.0.N.key for each, which only its owner may read.
    submit_keys: Path | None = None
    # Servers of other organisations that have bodies of shared workspaces: `url`, and `key_file` with a key of theirs.
    peers: tuple[Peer, ...] = ()
    # How many credits a dollar of fees is shown as.
    credits_per_usd: Annotated[float, msgspec.Meta(ge=0)] = 1000.0
    # Consensus nodes as `HOST:PORT=ACCOUNT`, and the mirror's REST address; those of the public networks are known.
    nodes: tuple[str, ...] = ()
    mirror_url: str = ""


class Witness(_Table, frozen=True):
    """A witness that cosigns this log's checkpoints: its address, and its verifier key (`redkey witness init` prints
    it).

    The path `add-checkpoint` below the address is called, as C2SP tlog-witness defines it.
    """

    url: Annotated[str, msgspec.Meta(pattern="^https?://[^/]")]
    key: str


class Retry(_Table, frozen=True):
    """The default retry policy for tasks of new workspaces; later the workspace's own policy has it."""

    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    # The pause after the first failure; it is multiplied by `backoff` for each further one.
    delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 0
    backoff: Annotated[float, msgspec.Meta(ge=1, le=10)] = 2
    # The pause is shortened by a random part of up to this share.
    jitter: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0
    longest_delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 3600


class Config(_Table, frozen=True):
    """All settings of `redkey serve`."""

    data: Path = Path(".redkey")
    # Where the ledger is: postgresql://user@host/database for several servers; in the data directory when empty.
    store: str = ""
    # A file with the key that seals the secrets in a database: 32 bytes in base64. REDKEY_STORE_KEY takes precedence.
    store_key_file: Path | None = None
    # Of several servers on a database one hosts the bus: the first, until another one starts with this.
    bus_here: bool = False
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = DEFAULT_PORT
    uds: Path | None = None
    ready_file: Path | None = None
    # The URL of this server in receipts and tokens; derived from host and port if absent.
    public_url: str = ""
    log_format: Literal["auto", "json", "text"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    # Log a line for each request.
    access_log: bool = False
    token_seconds: Annotated[int, msgspec.Meta(ge=60, le=86400)] = 900
    checkpoint_seconds: Seconds = 1.0
    checkpoint_records: Count = 1024
    # Tables of `url` and `key`: the witnesses that cosign every checkpoint.
    witnesses: tuple[Witness, ...] = ()
    # They are asked at most this often.
    witness_seconds: Seconds = 2.0
    idle_world_seconds: Seconds = 900.0
    # Whether /metrics answers without a key, with sums over all workspaces; operators always get queues and roles.
    open_metrics: bool = True
    # blocker type -> roles that are notified, for new workspaces; later the workspace's own policy has it. A type that
    # is not named keeps its default. The supervisors are always notified.
    block_routes: dict[BlockerType, BlockRoute] = {}
    limits: Limits = Limits()
    rate: Rate = Rate()
    cost: Cost = Cost()
    logins: Logins = Logins()
    login: Login = Login()
    oidc: Oidc = Oidc()
    signup: Signup = Signup()
    cards: Cards = Cards()
    a2a: A2a = A2a()
    outbox: Outbox = Outbox()
    retry: Retry = Retry()
    hedera: Hedera = Hedera()

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
        """Leave out the key: this text may be logged."""
        return f"Credentials(url={self.url!r}, uds={self.uds!r}, workspace_id={self.workspace_id!r})"


def read_credentials(data: Path) -> Credentials | None:
    """Return what an earlier `redkey serve` on this data directory left."""
    try:
        return msgspec.json.decode((data / CREDENTIALS).read_bytes(), type=Credentials)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


# The tables of the file, by their names.
TABLES: Mapping[str, type[_Table]] = {
    "limits": Limits,
    "rate": Rate,
    "cost": Cost,
    "logins": Logins,
    "login": Login,
    "oidc": Oidc,
    "signup": Signup,
    "cards": Cards,
    "a2a": A2a,
    "outbox": Outbox,
    "retry": Retry,
    "hedera": Hedera,
}


# A project's own settings, in the directory where `redkey` is run; `redkey init` writes it.
PROJECT_FILE = "redkey.toml"
_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


class Loaded(msgspec.Struct, frozen=True):
    """A configuration, and the source of each setting that is not a default: an option, a variable or a file."""

    config: Config
    sources: dict[str, str]


def config_file(given: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file with the settings: the given one, that of REDKEY_CONFIG, or redkey.toml of this directory."""
    if given is not None:
        return given
    if named := environment.get(PREFIX + "CONFIG"):
        return Path(named).expanduser()
    return Path(PROJECT_FILE) if Path(PROJECT_FILE).is_file() else None


def data_directory(given: str | Path | None, environment: Mapping[str, str]) -> Path:
    """Return the data directory of a client: the given one, that of REDKEY_DATA or the project's file, or .redkey."""
    found = given or environment.get(PREFIX + "DATA")
    if not found and (file := config_file(None, environment)) is not None:
        found = _read(file).get("data")
    return Path(found if isinstance(found, str | Path) else Config().data).expanduser()


def load(file: Path | None, environment: Mapping[str, str], arguments: Mapping[str, Any]) -> Config:
    """Load the configuration from a file, the environment and arguments; None among the arguments means not given."""
    return load_explained(file, environment, arguments).config


def load_explained(file: Path | None, environment: Mapping[str, str], arguments: Mapping[str, Any]) -> Loaded:
    """Load as `load`, with the source of each setting."""
    settings = _read(file) if file is not None else {}
    sources: dict[str, str] = {}
    for name, value in settings.items():
        nested = value if name in TABLES and isinstance(value, dict) else None
        sources.update({f"{name}.{part}": str(file) for part in nested} if nested is not None else {name: str(file)})
    for name, value in _variables(environment).items():
        table, _, rest = name.partition("_")
        if table in TABLES and rest:
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
    """Return every setting; those of a table with its name before them: `limits.body_bytes`."""
    top = [field.name for field in msgspec.structs.fields(Config) if field.name not in TABLES]
    return top + [f"{name}.{field.name}" for name, table in TABLES.items() for field in msgspec.structs.fields(table)]


def _check_names(sources: Mapping[str, str]) -> None:
    """Refuse a setting that does not exist, and suggest the one that was probably meant."""
    known = setting_names()
    for name, source in sources.items():
        if name in known or name in TABLES:
            continue
        is_variable = source.startswith(PREFIX)
        meant = next(iter(get_close_matches(name, known, cutoff=0.7)), None)
        shown = meant if meant is None or not is_variable else PREFIX + meant.replace(".", "_").upper()
        subject = source if is_variable else f"{source}: {name}"
        advice = f"did you mean {shown}?" if shown else "redkey config show lists all of them"
        raise ConfigRefused(f"{subject} is not a setting; {advice}", code="setting_unknown")


def _explain(message: str, sources: Mapping[str, str]) -> str:
    """Return what msgspec found wrong with a value, with the setting and its source first."""
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
