"""The bus as a process: a kill loses no accepted message, and a stop leaves no sockets behind."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.harness.bus_process import BusProcess
from tests.harness.weave import Link


class Sender(threading.Thread):
    """Sends as fast as it gets replies, and remembers which messages were accepted."""

    def __init__(self, link: Link, session: str) -> None:
        super().__init__()
        self._link, self._session = link, session
        self.accepted: list[str] = []
        self.enough = threading.Event()

    def run(self) -> None:
        number = 0
        try:
            while True:
                keys = []
                for _ in range(8):
                    number += 1
                    key = f"m-{number:06d}"
                    keys.append(
                        self._link.tell(
                            "message.send", "ann", session=self._session, dst="bob", id=key, payload={"text": key}
                        )
                    )
                for key in keys:
                    self._link.answer(key)
                    self.accepted.append(key)
                if len(self.accepted) > 100:
                    self.enough.set()
        except (OSError, EOFError):
            self._link.close()


def test_a_killed_bus_loses_no_accepted_message(home: Path) -> None:
    received: list[str] = []
    accepted: list[str] = []
    with BusProcess(home) as bus:
        session = bus.session()
        bus.join(session, "bob").close()
        sender = Sender(bus.join(session, "ann"), session)
        sender.start()
        assert sender.enough.wait(60)
        bus.kill()
        sender.join()
        accepted = sender.accepted
    with BusProcess(home) as bus, bus.join(session, "bob") as bob:
        while len(received) < len(accepted):
            received.append(bob.receive("bob")["id"])
        assert received == accepted[: len(received)]
        assert bus.stop() == 0


def test_a_message_confirmed_during_a_kill_is_at_most_sent_again(home: Path) -> None:
    with BusProcess(home) as bus:
        session = bus.session()
        with bus.join(session, "ann") as ann, bus.join(session, "bob") as bob:
            for number in range(20):
                ann.ask("message.send", "ann", session=session, dst="bob", id=f"m-{number}", payload="x")
            first = [bob.receive("bob", ack=number < 10)["id"] for number in range(20)]
            bus.kill()
    with BusProcess(home) as bus, bus.join(session, "bob") as bob:
        again = []
        while not again or again[-1] != "m-19":
            again.append(bob.receive("bob")["id"])
    assert first == [f"m-{number}" for number in range(20)]
    # What was confirmed may come again when the confirmation was not durable yet; what was not must.
    assert again[-10:] == first[10:]
    assert again == first[20 - len(again) :]


def test_a_stopped_bus_removes_its_sockets_and_keeps_its_log(home: Path) -> None:
    with BusProcess(home) as bus:
        session = bus.session()
        assert (home / "sessions" / session / "coord.sock").exists()
        assert bus.stop() == 0
    assert not (home / "coord.sock").exists()
    assert not (home / "http.json").exists()
    assert list((home / "sessions").iterdir()) == []
    with BusProcess(home) as bus, bus.link() as link:
        assert [one["id"] for one in link.ask("session.list", "codex-cli")["payload"]["sessions"]] == [session]
