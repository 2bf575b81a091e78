"""The ledger on PostgreSQL beside SQLite: one server, two servers on many workspaces, a slow network, and peers.

Everything runs on this machine in one run: SQLite and PostgreSQL alternate, with the same load from this process.
PostgreSQL syncs every commit. Peers use the same PostgreSQL as RedKey. The slow network is a process that adds two
milliseconds to each round trip between the server and PostgreSQL.
"""

from __future__ import annotations

import os
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import row, say
from bench.crew import Crew, call
from bench.load import drive
from bench.peers import QUEUES, Missing, servers
from bench.peers.servers import Place
from bench.queues import rate_of
from bench.served import Served, Site, redkey

WORKSPACES, CONNECTIONS, SLOW_CONNECTIONS = 64, 32, 64
DELAY_MS = 2.0
AIM_OF_SQLITE, AIM_OF_ONE, AIM_SLOW = 0.6, 1.3, 2000
PEERS = ("PostgreSQL SKIP LOCKED", "Procrastinate", "DBOS")
WARM_SECONDS = 0.3


def main(quick: bool) -> None:
    """Measure everything; `quick` runs shorter rounds, fewer workspaces, and no peer that must be installed."""
    seconds, workspaces = (1.0, 8) if quick else (3.0, WORKSPACES)
    if os.getloadavg()[0] > (os.cpu_count() or 1) / 2:
        say(f"The machine was busy (load {os.getloadavg()[0]:.1f}): these figures only show that it runs.")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        try:
            place = stack.enter_context(servers.postgres())
        except Missing as missing:
            say(f"PostgreSQL is missing here: {missing}")
            return
        _beside_sqlite(Path(folder), place, seconds)
        _two_servers(Path(folder), place, seconds, workspaces)
        _slow_network(Path(folder), place, seconds)
        _peers(Path(folder), place, quick)


@contextmanager
def on_postgres(
    folder: Path, place: Place, database: str, names: tuple[str, ...] = ("server",)
) -> Iterator[list[Served]]:
    """Servers on a new database of a PostgreSQL."""
    import psycopg

    with psycopg.connect(str(place["dsn"]), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}".encode())
    directory = folder / database
    directory.mkdir()
    key = directory / "store.key"
    key.touch(0o600)
    key.write_bytes(b64encode(os.urandom(32)))
    url = str(place["dsn"]).rpartition("/")[0] + f"/{database}"
    config = f'store = "{url}"\nstore_key_file = "{key}"\n'
    with ExitStack() as stack:
        yield [stack.enter_context(redkey(directory, name, config=config)) for name in names]


def _cycles(site: Site, count: int, seconds: float) -> tuple[float, float]:
    """Cycles per second of one workspace, and requests per second."""
    with Crew(site).lanes(count, lambda agent: agent.cycle) as lanes:
        drive(lanes, WARM_SECONDS)
        load = drive(lanes, seconds)
    return load.rate, 3 * load.rate


def _beside_sqlite(folder: Path, place: Place, seconds: float) -> None:
    with redkey(folder) as sqlite, on_postgres(folder, place, "one") as [postgres]:
        for turn in range(2):
            sites = [("SQLite", sqlite), ("PostgreSQL", postgres)]
            rates = {name: _cycles(site, CONNECTIONS, seconds)[0] for name, site in (sites[::-1] if turn else sites)}
            row(f"cycles on SQLite, {CONNECTIONS} connections", rates["SQLite"])
            row(
                f"cycles on PostgreSQL, {CONNECTIONS} connections",
                rates["PostgreSQL"],
                beside=rates["SQLite"],
                share_aim=AIM_OF_SQLITE,
            )


def _two_servers(folder: Path, place: Place, seconds: float, workspaces: int) -> None:
    with on_postgres(folder, place, "two", ("first", "second")) as [first, second]:
        keys = [str(call(first, "POST", "/workspaces", {"name": f"W{n}"})["apiKey"]) for n in range(workspaces)]
        one = _spread([Site(first.url, key) for key in keys], seconds)
        both = [Site((first, second)[number % 2].url, key) for number, key in enumerate(keys)]
        row(f"cycles on {workspaces} workspaces, one server", one)
        two = _spread(both, seconds)
        row(f"cycles on {workspaces} workspaces, two servers", two, beside=one, share_aim=AIM_OF_ONE)


def _spread(sites: list[Site], seconds: float) -> float:
    """Cycles per second with one agent in each workspace."""
    with ExitStack() as stack:
        lanes = [lane for site in sites for lane in stack.enter_context(Crew(site).lanes(1, lambda agent: agent.cycle))]
        drive(lanes, WARM_SECONDS)
        return drive(lanes, seconds).rate


def _slow_network(folder: Path, place: Place, seconds: float) -> None:
    with servers.delayed(place, DELAY_MS / 2) as slow, on_postgres(folder, slow, "slow") as [server]:
        _, requests = _cycles(server, SLOW_CONNECTIONS, seconds)
    row(f"requests, {DELAY_MS:g} ms added to round trips, {SLOW_CONNECTIONS} connections", requests, aim=AIM_SLOW)


def _peers(folder: Path, place: Place, quick: bool) -> None:
    with on_postgres(folder, place, "beside") as [server]:
        for peer in QUEUES:
            if not peer.name.startswith(PEERS) or (quick and peer.packages):
                continue
            try:
                peer.python()
            except Missing as missing:
                say(f"{peer.name} is missing here: {missing}")
                continue
            ours = _cycles(server, CONNECTIONS, 1.0)[0]
            theirs = rate_of(peer, place, CONNECTIONS, quick)
            row(f"{peer.name} on the same PostgreSQL, {CONNECTIONS} workers", theirs, beside=ours)
            say(f"{peer.name}: {peer.durability}.")
