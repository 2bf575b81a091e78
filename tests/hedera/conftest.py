"""A stand-in network for each test, with an operator that has 1,000 HBAR and a topic of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hiero_sdk_python import Client

from redkey.hedera.network import Network, Operator
from redkey.hedera.standin.faults import Faults
from redkey.hedera.standin.server import StandIn
from tests.harness.hedera import addresses_of, create_topic, sdk_client


@pytest.fixture
def faults() -> Faults:
    """No faults; a test adds its own."""
    return Faults(delay_seconds=0.2, lag_seconds=0.2)


@pytest.fixture
def standin(faults: Faults) -> Iterator[StandIn]:
    """A network with two nodes."""
    with StandIn(faults=faults, nodes=2) as running:
        yield running


@pytest.fixture
def operator(standin: StandIn) -> Operator:
    """An account with 1,000 HBAR."""
    return Operator(*standin.open_account())


@pytest.fixture
def network(standin: StandIn, operator: Operator) -> Iterator[Network]:
    """The wrapper on that network."""
    opened = Network(addresses_of(standin), operator)
    yield opened
    opened.close()


@pytest.fixture
def client(standin: StandIn, operator: Operator) -> Client:
    """The official SDK's own client on that network."""
    return sdk_client(standin, operator)


@pytest.fixture
def topic(network: Network) -> str:
    """A topic with the operator's key as submit key and admin key."""
    return create_topic(network, network.operator.key)
