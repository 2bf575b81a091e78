"""The views of a ledger in PostgreSQL: what Supabase's roles see of one workspace, and nothing of another."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg import sql

from redkey.cli import main
from redkey.stores.opening import store_at
from redkey.stores.published_sql import scripts
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.postgres import cluster, database
from tests.harness.server import Server, serving

ENVIRONMENT = {"REDKEY_STORE_KEY": b64encode(bytes(32)).decode()}
VIEWS = ("tasks", "agents", "claims", "events", "workflows", "agent_tasks", "agent_definitions", "inbox", "entities")
# What Supabase brings: its roles, and Realtime's function, table and name of the channel.
SUPABASE = """
DO $$ BEGIN
  CREATE ROLE anon NOLOGIN; CREATE ROLE authenticated NOLOGIN; CREATE ROLE service_role NOLOGIN BYPASSRLS;
EXCEPTION WHEN duplicate_object THEN NULL; END $$;
CREATE SCHEMA realtime;
CREATE TABLE realtime.messages (topic text, payload jsonb, event text, private boolean);
ALTER TABLE realtime.messages ENABLE ROW LEVEL SECURITY;
GRANT USAGE ON SCHEMA realtime TO authenticated;
GRANT SELECT ON realtime.messages TO authenticated;
CREATE FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean DEFAULT true) RETURNS void
LANGUAGE sql AS $$ INSERT INTO realtime.messages VALUES (topic, payload, event, private) $$;
CREATE FUNCTION realtime.topic() RETURNS text LANGUAGE sql AS $$ SELECT current_setting('realtime.topic', true) $$;
"""
BRIEF = {
    "wire": "1.0",
    "type": "brief",
    "sender": "system",
    "ts": "2026-04-28T00:00:00Z",
    "payload": {
        "goal": "The guest is researched.",
        "context": "",
        "constraints": [],
        "acceptance_criteria": ["Three facts."],
        "output_contract": {
            "type": "file",
            "schema_ref": None,
            "output_ref_required": False,
            "min_length": 0,
            "evaluate": None,
        },
        "escalation_triggers": [],
        "env": {
            "client_id": "bezeliq",
            "task_id": "0.0.1",
            "project_id": "0.0.2",
            "repo_url": None,
            "worktree_path": None,
        },
    },
}


class Project:
    """A Supabase project with a ledger of two workspaces."""

    def __init__(self, url: str, server: Server) -> None:
        self.url = url
        with server.client() as admin:
            made = admin.post("/workspaces", {"name": "Second"}).json
        self.first, self.second = server.workspace_id, str(made["workspaceId"])
        with server.client() as first, server.client(str(made["apiKey"])) as second:
            self.tasks = [self._work(one) for one in (first, second)]

    def _work(self, client: Any) -> str:
        begin_queue(client)
        assert client.post("/roles", {"id": "researcher", "name": "Researcher"}).status == 201
        winner, loser = (register(client, name)["agentId"] for name in ("Ada", "Bea"))
        for agent in (winner, loser):
            assert client.post(f"/roles/researcher/agents/{agent}").status == 200
        task = create_task(client, requiredRoles=["researcher"], brief=BRIEF)
        assert claim(client, task, winner)["status"] == "claimed"
        assert claim(client, task, loser)["status"] == "missed"
        sent = client.post(
            "/inbox", {"to": winner, "subject": "Hello", "body": "Read this.", "messageType": "info", "priority": 3}
        )
        assert sent.status == 201, sent.text
        return task

    def rows(
        self, view: str, *, role: str = "authenticated", claims: object = None, where: str = "true"
    ) -> list[dict[str, Any]]:
        """What a role with these claims reads, as the Data API would ask."""
        with psycopg.connect(self.url, row_factory=psycopg.rows.dict_row) as connection, connection.transaction():
            connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
            connection.execute(
                "SELECT set_config('request.jwt.claims', %s, true)", [json.dumps(claims) if claims else ""]
            )
            query = sql.SQL("SELECT * FROM redkey.{} WHERE {}").format(sql.Identifier(view), sql.SQL(where))  # type: ignore[arg-type]
            return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SUPABASE)
            # Applied by hand, as Supabase does: the server finds its format there and changes nothing.
            for script in scripts(supabase=True, broadcast=True):
                connection.execute(script.sql.encode())
        with serving(tmp_path_factory.mktemp("views"), "--store", url, environment=ENVIRONMENT) as server:
            yield Project(url, server)


@pytest.mark.parametrize("view", VIEWS)
def test_a_workspace_reads_its_own_rows_and_none_of_another(project: Project, view: str) -> None:
    everything = project.rows(view, role="service_role")
    for mine, other in ((project.first, project.second), (project.second, project.first)):
        seen = project.rows(view, claims={"workspace_id": mine})
        assert {row["workspace_id"] for row in seen} <= {mine}
        if view != "entities":
            assert len(seen) == sum(row["workspace_id"] == mine for row in everything)
        assert project.rows(view, claims={"workspace_id": mine}, where=f"workspace_id = '{other}'") == []
        in_metadata = {"app_metadata": {"workspace_id": mine}, "user_metadata": {"workspace_id": other}}
        assert project.rows(view, claims=in_metadata) == seen
    if view != "workflows":
        assert {row["workspace_id"] for row in everything} == {project.first, project.second}


@pytest.mark.parametrize("claims", [None, {}, {"workspace_id": None}, {"workspace_id": "wk_none"}, {"sub": "x"}])
def test_without_a_workspace_in_the_claims_nothing_is_read(project: Project, claims: object) -> None:
    for view in VIEWS:
        assert project.rows(view, claims=claims) == []


def test_anon_may_not_even_ask(project: Project) -> None:
    for view in VIEWS:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            project.rows(view, role="anon", claims={"workspace_id": project.first})


@pytest.mark.parametrize("role", ["authenticated", "service_role"])
def test_no_role_of_supabase_writes(project: Project, role: str) -> None:
    tables = cluster().execute(
        "SELECT tablename, rowsecurity FROM pg_tables WHERE schemaname = 'redkey'",
        database=project.url.partition("?")[0].rpartition("/")[2],
    )
    assert all(secured for _, secured in tables)
    for table, _ in tables:
        for statement in ("DELETE FROM redkey.{}", "INSERT INTO redkey.{} DEFAULT VALUES", "TRUNCATE redkey.{}"):
            with psycopg.connect(project.url) as connection:
                connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(sql.SQL(statement).format(sql.Identifier(table)))  # type: ignore[arg-type]


def test_secrets_keys_and_stored_replies_are_read_by_nobody(project: Project) -> None:
    claims = {"workspace_id": project.first}
    kinds = {row["kind"] for row in project.rows("entities", claims=claims)}
    assert kinds <= {"task", "agent", "role", "queue", "message", "miss", "workspace", "void"}
    for table in ("secret", "setting", "content", "piece", "server", "counter"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            project.rows(table, claims=claims)
    # Not by the function behind the views either.
    with psycopg.connect(project.url) as connection, connection.transaction():
        connection.execute("SET LOCAL ROLE authenticated")
        connection.execute("SELECT set_config('request.jwt.claims', %s, true)", [json.dumps(claims)])
        found = connection.execute(
            "SELECT redkey.document(number, 'task', %s) FROM generate_series(1, 9) AS number", [project.tasks[1]]
        ).fetchall()
    assert found == [(None,)] * 9


def test_the_views_have_what_the_seeds_name(project: Project) -> None:
    claims = {"workspace_id": project.first}
    (task,) = project.rows("agent_tasks", claims=claims)
    assert (task["id"], task["status"], task["role"]) == (project.tasks[0], "claimed", "role_researcher")
    assert task["title"] == "Research Piers Gorman"
    assert task["brief"]["payload"]["goal"] == BRIEF["payload"]["goal"]  # type: ignore[index]
    cards = {row["name"]: row["agent_card"] for row in project.rows("agent_definitions", claims=claims)}
    assert cards["Ada"]["description"] == "Finds and summarizes source material"
    (message,) = project.rows("inbox", claims=claims)
    assert message["payload"]["type"] == "inbox"
    assert message["payload"]["payload"]["subject"] == "Hello"
    assert message["to_agent"] == task_agent(project, claims)
    with store_at(project.url).inspect() as evidence:
        topic = next(one for one in evidence.topics() if evidence.setting(f"workspace/{project.first}") == one)
        records = evidence.read(topic)
    events = project.rows("events", claims=claims)
    events.sort(key=lambda row: row["sequence_number"])
    assert [row["wire"] for row in events] == [json.loads(record.wire) for record in records]
    assert [row["hcs"]["running_hash"] for row in events] == [record.running_hash.hex() for record in records]
    first = events[0]
    assert first["hcs"]["topic_id"] == topic
    assert first["hcs"]["sequence_number"] == 1
    assert first["hcs"]["consensus_timestamp"].endswith("Z")
    nanoseconds = int(first["hcs"]["consensus_timestamp"][-10:-1])
    assert nanoseconds == records[0].timestamp % 10**9


def task_agent(project: Project, claims: object) -> str:
    """The slug of the agent that holds the task."""
    (task,) = project.rows("tasks", claims=claims)
    return next(
        str(row["slug"]) for row in project.rows("agents", claims=claims) if row["agent_id"] == task["agent_id"]
    )


@pytest.mark.parametrize("text", ["x\0y", "a\\u0000b", "\\\0\0", "\\\\u0000", "plain"])
def test_a_text_with_nul_is_shown_and_stops_no_query(project: Project, text: str) -> None:
    """The API takes none today; a ledger of Hedera may hold one, and jsonb would refuse the whole row."""
    with psycopg.connect(project.url) as connection:
        found = connection.execute(
            "SELECT redkey.as_json(%s) ->> 'text'", [json.dumps({"text": text}).encode()]
        ).fetchone()
    assert found == (text.replace("\0", "\ufffd"),)


def test_contention_by_role_is_one_query(project: Project) -> None:
    with psycopg.connect(project.url) as connection, connection.transaction():
        connection.execute("SET LOCAL ROLE authenticated")
        connection.execute(
            "SELECT set_config('request.jwt.claims', %s, true)", [json.dumps({"workspace_id": project.first})]
        )
        found = connection.execute(
            "SELECT role, count(*) FILTER (WHERE outcome = 'claimed') AS won, "
            "count(*) FILTER (WHERE outcome = 'missed') AS missed "
            "FROM redkey.claims, unnest(roles) AS role GROUP BY role"
        ).fetchall()
    assert found == [("role_researcher", 1, 1)]


def test_commits_are_broadcast_to_their_workspace_and_a_broken_realtime_fails_no_commit(project: Project) -> None:
    with psycopg.connect(project.url, autocommit=True) as connection:
        sent = connection.execute("SELECT DISTINCT topic, private FROM realtime.messages").fetchall()
        assert set(sent) == {(f"redkey:{one}", True) for one in (project.first, project.second)}
        connection.execute("ALTER TABLE realtime.messages RENAME TO gone")
        try:
            connection.execute("UPDATE redkey.topic SET sequence = sequence + 1")
            connection.execute("UPDATE redkey.topic SET sequence = sequence - 1")
        finally:
            connection.execute("ALTER TABLE realtime.gone RENAME TO messages")


def _run(*arguments: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["migrations", *map(str, arguments)], prog_name="redkey")
    assert done.exit_code == code, done.output
    return done


def test_the_printed_sql_is_what_the_server_applies(tmp_path: Path) -> None:
    from redkey.stores.postgres.store import PostgresStore

    layout = (
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'redkey' ORDER BY 1, 2"
    )
    with database() as by_hand, database() as by_server:
        with psycopg.connect(by_hand) as connection:
            connection.execute(_run().stdout.encode())
        PostgresStore(by_server).close()
        PostgresStore(by_hand).close()
        found = [
            cluster().execute(layout, database=url.partition("?")[0].rpartition("/")[2]) for url in (by_hand, by_server)
        ]
    assert found[0] == found[1]
    assert len(found[0]) > 50


def test_files_that_are_there_stay_and_changed_ones_are_refused(tmp_path: Path) -> None:
    first = json.loads(_run("--supabase", "--output", tmp_path / "m", "--json").stdout)
    assert first["written"] == first["scripts"] == sorted(first["scripts"])
    assert all(name[:14].isdigit() and "_redkey_" in name for name in first["scripts"])
    again = json.loads(_run("--supabase", "--broadcast", "--output", tmp_path / "m", "--json").stdout)
    assert [name for name in again["written"] if "broadcast" not in name] == []
    (tmp_path / "m" / first["scripts"][0]).write_text("DROP SCHEMA redkey;")
    refused = _run("--supabase", "--output", tmp_path / "m", code=1)
    assert "migration_differs" in refused.output or "differs from the script" in refused.output
    assert "--supabase" in _run("--broadcast", code=2).output
