"""A workspace whose checkpoints are anchored on a stand-in network, step by step, with crashes at any point."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from redkey.commands.actor import Actor
from redkey.commands.registry import CreateKey, GrantCredits
from redkey.errors import NetworkAway, NetworkRefused
from redkey.hedera.anchor_post import AnchorPost
from redkey.hedera.network import Network, Operator
from redkey.hedera.prices import FeeTerms
from redkey.hedera.standin.server import StandIn
from redkey.ledger.checkpoint import open_checkpoint
from redkey.ledger.fees import USD
from redkey.services.anchoring import Anchoring, Means
from redkey.services.anchors import newest_anchor
from redkey.services.network_fees import FeeLimits
from redkey.services.receipts import receipt_for
from redkey.services.workspaces import Founding, begin_directly
from redkey.stores.opening import open_signing, open_store
from redkey.wire.decode import decode
from tests.harness.desk import CountedIds
from tests.harness.hedera import addresses_of, create_topic
from tests.harness.office import Office

NO_LIMITS = FeeLimits(10**6 * USD, 10**6 * USD)


class Killed(BaseException):
    """The simulated process is killed here."""


class AlwaysAlone:
    """The lock of a server that has no other servers beside it."""

    def take(self) -> bool:
        return True

    def release(self) -> None:
        """Nothing is held."""


class AnchorBench:
    """One workspace on disk, and a server that anchors it on request."""

    def __init__(
        self, standin: StandIn, directory: Path, *, limits: FeeLimits = NO_LIMITS, hbar: float = 100_000
    ) -> None:
        self.standin, self.limits = standin, limits
        self.store = open_store(directory)
        self.signing = open_signing(self.store)
        ids = CountedIds()
        key = CreateKey("key_" + ids.ulid(), "rk_testkey", ("admin", "operator"), secret_sha256="0" * 64)
        founder = Actor("", key.key_id, frozenset({"admin", "operator"}))
        begun = begin_directly(self.store, ids, self.signing, Founding(founder=founder, key=key))
        self.office = Office(self.store, ids).open(begun.topic, begun.workspace_id)
        self.office.admin = Actor(begun.workspace_id, key.key_id, frozenset({"admin", "operator"}))
        self.local = begun.topic
        self.operator = Operator(*standin.open_account(hbar=hbar))
        self.network = Network(addresses_of(standin), self.operator)
        self.topic = create_topic(self.network, self.operator.key)
        self._threads = ThreadPoolExecutor(1)
        # How many calls remain until the process is killed, by place: before or after the call's effect.
        self.kill_in: dict[str, int] = {}
        self._others: list[Network] = []
        self.restart()

    def restart(self, *, operator: Operator | None = None, topic: str | None = None) -> None:
        """Start a new process on the same store: it knows only what is in the store."""
        network = self.network
        if operator is not None:
            network = Network(addresses_of(self.standin), operator)
            self._others.append(network)
        self.post = AnchorPost(network, topic or self.topic, FeeTerms(USD, USD))
        means = Means(
            store=self.store,
            act=self._act,
            threads=self._threads,
            post=_Mortal(self.post, self._maybe_die),
            limits=self.limits,
            seconds=0.0,
            alone=AlwaysAlone(),
        )
        self.anchoring = Anchoring(means, _fail)

    async def record(self) -> None:
        """Record two requests and sign the head."""
        for _ in range(2):
            await self.office.do(GrantCredits(1, "credit"))
        await self.office.coordinator.act(self.local, lambda unit: self.signing.sign_in(unit, self.local))

    async def anchor(self, patience: int = 400) -> None:
        """Repeat until the newest signed checkpoint is anchored, as a server would, through all failures."""
        wanted = self.store.checkpoints(self.local, 1)[0][0]
        for _ in range(patience):
            if self.anchored_size >= wanted:
                return
            try:
                await self.anchoring.step(self.local)
            except (NetworkAway, NetworkRefused):
                continue
            except Killed:
                self.restart()
        raise AssertionError(f"not anchored after {patience} steps")

    @property
    def anchored_size(self) -> int:
        """The size of the newest anchored checkpoint."""
        found = newest_anchor(self.store, self.local)
        return found.checkpoint.size if found is not None else 0

    def on_network(self) -> list[bytes]:
        """The messages of the public topic."""
        return [message.record.wire for message in self.standin.state.topics[self.topic].messages]

    def receipt(self, sequence: int = 1) -> dict[str, Any]:
        """The receipt of a record."""
        record = self.store.read(self.local, sequence - 1, 1)[0]
        wire_id = decode(record.wire)["wire_id"]
        found = receipt_for(self.store, self.local, wire_id, self.signing, base_url="http://127.0.0.1")
        assert found is not None
        return found

    def newest_size(self) -> int:
        """The size of the newest signed checkpoint."""
        return open_checkpoint(self.store.checkpoints(self.local, 1)[0][1])[0].size

    async def close(self) -> None:
        """Close everything."""
        await self.office.coordinator.stop()
        for network in (self.network, *self._others):
            network.close()
        self._threads.shutdown()
        self.store.close()

    async def _act(self, topic: str, work: Any) -> Any:
        self._maybe_die("before act")
        result = await self.office.coordinator.act(topic, work)
        self._maybe_die("after act")
        return result

    def _maybe_die(self, place: str) -> None:
        if place in self.kill_in:
            self.kill_in[place] -= 1
            if self.kill_in[place] < 0:
                del self.kill_in[place]
                raise Killed


class _Mortal:
    """A wrapper whose process may be killed before or after each call."""

    def __init__(self, post: AnchorPost, maybe_die: Callable[[str], None]) -> None:
        self._post, self._maybe_die, self.network = post, maybe_die, post.network

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._post, name)

        def mortal(*arguments: Any) -> Any:
            self._maybe_die(f"before {name}")
            try:
                return call(*arguments)
            finally:
                self._maybe_die(f"after {name}")

        return mortal


def _fail(cause: BaseException) -> None:
    raise cause
