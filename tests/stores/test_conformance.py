"""Every sequenced store passes the same suite."""

from __future__ import annotations

import pytest

from tests.conformance.stores.cases import SequencedStoreCases
from tests.conformance.stores.harness import Maker


class TestMemoryStore(SequencedStoreCases):
    @pytest.fixture
    def maker(self, memory_maker: Maker) -> Maker:
        return memory_maker


class TestNetworkStore(SequencedStoreCases):
    """The memory store across a network, with delays and late notices."""

    @pytest.fixture
    def maker(self, network_maker: Maker) -> Maker:
        return network_maker


class TestSqliteStore(SequencedStoreCases):
    @pytest.fixture
    def maker(self, sqlite_maker: Maker) -> Maker:
        return sqlite_maker


class TestPostgresStore(SequencedStoreCases):
    @pytest.fixture
    def maker(self, postgres_maker: Maker) -> Maker:
        return postgres_maker
