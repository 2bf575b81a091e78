"""A server that is killed and started again on its port; a test that fails shows the log of each start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.ports import lasting_port
from tests.harness.server import Server, begin


class Servers:
    """The servers of one data directory, one after another."""

    def __init__(self, directory: Path, config: str) -> None:
        self._directory, self._config, self._port = directory, config, str(lasting_port())
        self._started: list[Server] = []
        self.start()

    @property
    def last(self) -> Server:
        """The server that was started last."""
        return self._started[-1]

    def start(self) -> None:
        """Start a server, with a log of its own."""
        name = f"server-{len(self._started)}"
        self._started.append(begin(self._directory, "--port", self._port, config=self._config, name=name))

    def kill(self) -> None:
        """Kill the last server, as `kill -9` does."""
        self.last.process.kill()
        self.last.process.wait()

    def logs(self) -> str:
        """The logs of all starts, also of one that failed."""
        files = sorted(self._directory.glob("server-*.log"))
        return "\n".join(f"{file.name}:\n{file.read_text()}" for file in files)


@contextmanager
def returning(directory: Path, *, config: str = "") -> Iterator[Servers]:
    """A server that a test may kill and start again."""
    servers = Servers(directory, config)
    try:
        yield servers
    except BaseException as error:
        error.add_note(servers.logs())
        raise
    finally:
        servers.kill()
