"""Each way in which a database cannot be used has one clear line with the next step; nothing is half-written."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from redkey.errors import KeyRefused, RedKeyError, StoreFailed, StoreFull
from redkey.ledger.ports import Row
from redkey.stores.opening import open_store
from redkey.stores.postgres import PostgresStore
from redkey.stores.postgres.secrets import VARIABLE
from tests.conformance.stores.checker import check_topic
from tests.conformance.stores.harness import append, entries
from tests.harness.postgres import cluster
from tests.harness.postgres_proxy import Proxy


def name_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def refusal(url: str, *, create: bool = True) -> RedKeyError:
    """Why a store cannot be opened, in one line."""
    with pytest.raises(RedKeyError) as refused:
        open_store(url, create=create)
    assert "\n" not in refused.value.message
    return refused.value


@pytest.mark.parametrize(
    ("url", "code", "step"),
    [
        ("postgresql://h:port/x", "store_url", "postgresql://user@host:5432/database"),
        ("postgresql://h/x?colour=red", "store_url", "postgresql://user@host:5432/database"),
        ("postgresql://redkey@127.0.0.1:1/x", "store_unreachable", "check that it runs"),
        ("mysql://h/x", "store_unknown", "postgresql"),
    ],
)
def test_a_wrong_url(url: str, code: str, step: str) -> None:
    refused = refusal(url)
    assert refused.code == code
    assert step in refused.message


def test_a_database_that_does_not_exist(postgres_url: str) -> None:
    refused = refusal(cluster().url("none_of_that_name"))
    assert (refused.code, "createdb" in refused.message) == ("no_store", True)


def test_a_user_that_does_not_exist(postgres_url: str) -> None:
    refused = refusal(cluster().url(name_of(postgres_url), "stranger"))
    assert (refused.code, "user and password" in refused.message) == ("store_login", True)


def test_a_database_without_a_ledger_is_not_made_one_unasked(postgres_url: str) -> None:
    refused = refusal(postgres_url, create=False)
    assert (refused.code, "redkey serve --store" in refused.message) == ("no_store", True)


def test_a_user_without_rights(postgres_url: str) -> None:
    name = name_of(postgres_url)
    role = f"weak_{name}"
    cluster().execute(f"CREATE ROLE {role} LOGIN")
    try:
        refused = refusal(cluster().url(name, role))
    finally:
        cluster().execute(f"DROP ROLE {role}")
    assert (refused.code, "GRANT CREATE" in refused.message) == ("store_rights", True)
    assert cluster().execute("SELECT to_regnamespace('redkey')", database=name) == [(None,)]


def test_too_old_a_server(postgres_url: str) -> None:
    with Proxy(cluster().socket) as proxy:
        proxy.replaced = (b"server_version\x0018.", b"server_version\x0016.")
        refused = refusal(proxy.url(name_of(postgres_url)))
    assert (refused.code, "17 or newer" in refused.message) == ("store_too_old", True)
    assert cluster().execute("SELECT to_regnamespace('redkey')", database=name_of(postgres_url)) == [(None,)]


def test_a_newer_format(postgres_url: str) -> None:
    PostgresStore(postgres_url).close()
    cluster().execute("INSERT INTO redkey.format (version, name) VALUES (99, 'later')", database=name_of(postgres_url))
    refused = refusal(postgres_url)
    assert (refused.code, "use a newer RedKey" in refused.message) == ("newer_format", True)


def test_a_full_disk_fails_the_unit_whole(postgres_url: str) -> None:
    """PostgreSQL itself raises the error that a full disk gives, in the middle of the unit."""
    name = name_of(postgres_url)
    with PostgresStore(postgres_url) as store:
        topic = store.create_topic()
        append(store, topic, 2)
        cluster().execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$",
            database=name,
        )
        cluster().execute(
            "CREATE TRIGGER full_disk BEFORE INSERT ON redkey.row EXECUTE FUNCTION full_disk()", database=name
        )

        def write() -> None:
            with store.write(topic) as unit:
                unit.append(topic, entries(3, 1), 2)
                unit.put_rows(topic, [Row("task", "t1", b"{}")])

        with pytest.raises(StoreFull) as full:
            write()
        assert "free some space" in full.value.message
        assert len(check_topic(store, topic)) == 2
        cluster().execute("DROP TRIGGER full_disk ON redkey.row", database=name)
        append(store, topic, 1)
        assert len(check_topic(store, topic)) == 3


def test_too_many_connections(postgres_url: str) -> None:
    name = name_of(postgres_url)
    PostgresStore(postgres_url).close()
    role = f"busy_{name}"
    cluster().execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
    try:
        refused = refusal(cluster().url(name, role))
    finally:
        cluster().execute(f"DROP ROLE {role}")
    assert isinstance(refused, StoreFailed)
    assert (refused.code, "max_connections" in refused.message) == ("too_many_connections", True)


def test_a_wrong_key_of_the_secrets(postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def issuing(key: str, file: Path | None = None) -> bytes:
        monkeypatch.setenv(VARIABLE, key)
        with PostgresStore(postgres_url, key_file=file) as store:
            return store.secrets.issuing_secret()

    right, wrong = (b64encode(bytes([number]) * 32).decode() for number in (1, 2))
    for key, code in (("", "store_key_missing"), ("short", "store_key_wrong")):
        with pytest.raises(KeyRefused) as refused:
            issuing(key)
        assert (refused.value.code, "openssl rand -base64 32" in refused.value.message) == (code, True)
    secret = issuing(right)
    with pytest.raises(KeyRefused) as refused:
        issuing(wrong)
    assert (refused.value.code, "of the other servers" in refused.value.message) == ("store_key_wrong", True)
    file = tmp_path / "key"
    file.write_text(right)
    file.chmod(0o644)
    with pytest.raises(KeyRefused) as refused:
        issuing("", file)
    assert refused.value.code == "key_exposed"
    file.chmod(0o600)
    assert issuing("", file) == secret


def test_keys_are_added_and_retired(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, b64encode(b"1" * 32).decode())
    with PostgresStore(postgres_url) as store:
        keys = store.secrets.signers("redkey/log")
        with pytest.raises(KeyRefused):
            keys.signers(create=False)
        (first,) = keys.signers()
        with pytest.raises(KeyRefused) as refused:
            keys.retire(first.verifier)
        assert refused.value.code == "key_last"
        second = keys.add()
        assert [str(one.verifier) for one in keys.signers()] == [str(first.verifier), str(second.verifier)]
        keys.retire(first.verifier)
        assert [str(one.verifier) for one in store.secrets.signers("redkey/log").signers()] == [str(second.verifier)]
        with pytest.raises(KeyRefused) as refused:
            store.secrets.signers("redkey/other").signers()
        assert refused.value.code == "key_other_log"


def test_a_replica_is_refused_with_a_hint(postgres_url: str) -> None:
    name = name_of(postgres_url)
    with PostgresStore(postgres_url) as store:
        cluster().execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        store.connections.drop_idle()
        with pytest.raises(StoreFailed) as refused:
            store.check_writable()
        assert (refused.value.code, "the primary" in refused.value.message) == ("store_read_only", True)
