"""A server into which bugs are planted one after another, while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.a2a.talk import GRPC
from tests.harness.client import Client
from tests.harness.server import Server, serving

# Runs in the server: with the first call after the file has changed, the last bug is taken out and the new one put in.
_PLANTER = """
from pathlib import Path

import redkey.a2a.face as face

wanted, planted, before, admit = Path(__file__).with_name("bug"), "", [], face.Face.admit


def plant(owner, name, value):
    before.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)


def switched(*given, **named):
    global planted
    if (code := wanted.read_text()) != planted:
        while before:
            setattr(*before.pop())
        planted = code
        exec(code, {"plant": plant})
        wanted.with_name("planted").write_text(code)
    return admit(*given, **named)


face.Face.admit = switched
"""


class Planting:
    """A running server, its owner, and the place of its bugs."""

    def __init__(self, server: Server, owner: Client, place: Path) -> None:
        self.server, self.owner, self._place = server, owner, place

    @contextmanager
    def bug(self, code: str) -> Iterator[None]:
        """The server has a bug for the length of a block.

        A check may also fail because the code of the bug does: that is no catch.
        """
        self._place.write_text(code)
        before = len(self.server.logs())
        try:
            yield
        finally:
            self._place.write_text("")
        assert self._place.with_name("planted").read_text() == code, "the bug was not planted"
        logs = self.server.logs()[before:]
        assert "Traceback" not in logs, logs


@contextmanager
def planting(directory: Path) -> Iterator[Planting]:
    """A server without a bug so far."""
    planter = directory / "planter"
    planter.mkdir()
    (planter / "bug").write_text("")
    (planter / "sitecustomize.py").write_text(_PLANTER)
    with (
        serving(directory, environment={"PYTHONPATH": str(planter)}, config=GRPC) as server,
        server.client() as owner,
    ):
        yield Planting(server, owner, planter / "bug")
