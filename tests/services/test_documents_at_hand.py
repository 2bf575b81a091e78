"""A claim includes the task's document; a damaged document affects its task alone."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from redkey.commands.claims import ClaimNext, CompleteClaim
from redkey.commands.tasks import CreateTask
from redkey.errors import StoreFailed
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.readmodel.replies import subject
from redkey.readmodel.rows import task_list
from redkey.services.outcome import Outcome
from redkey.services.place import Place
from redkey.stores.sqlite import SqliteStore
from tests.harness.desk import QUEUE
from tests.harness.office import Office


def _asked(office: Office, title: str) -> tuple[CreateTask, Content]:
    text = content.document({"title": title}, office.ids.nonce())
    return CreateTask("task_" + office.ids.ulid(), QUEUE, content.ref(text)), text


def _titles(outcome: Outcome, place: Place) -> list[str]:
    """The titles of the tasks that were claimed, read as a reply reads them: inside the unit."""
    records = outcome.records + (outcome.next.records if outcome.next is not None else [])
    claimed = [place.task(subject(one.event)) for one in records if one.event.type == "task.claimed"]
    return [(place.document(task.content_sha256) or {})["title"] for task in claimed]


def test_claims_bring_the_documents_and_a_damaged_one_hurts_only_its_own_task(tmp_path: Path) -> None:
    async def whole() -> None:
        with SqliteStore(tmp_path) as store:
            office = await Office(store).begin()
            agents = [await office.agent(name) for name in ("atlas", "boreas")]
            (hurt, hurt_text), (well, well_text), (last, last_text) = (_asked(office, f"Number {n}") for n in range(3))
            for command, text in ((hurt, hurt_text), (well, well_text)):
                await office.do(command, contents=(text,))
            with sqlite3.connect(tmp_path / "redkey.db") as database:
                database.execute(
                    "UPDATE content SET data = zeroblob(length(data)) WHERE sha256 = ?",
                    (bytes.fromhex(hurt_text.sha256),),
                )
            database.close()
            first, second = await asyncio.gather(
                *(office.do(ClaimNext(QUEUE, agent), reply=_titles) for agent in agents), return_exceptions=True
            )
            # The caller of the damaged one gets an error, and holds the task all the same.
            assert isinstance(first, StoreFailed)
            assert store.row(office.topic, "task", hurt.task_id).listed == task_list(QUEUE, "claimed")
            assert isinstance(second, Outcome)
            assert second.reply == ["Number 1"]

            # What is created and claimed by one unit is at hand too, and so is what comes with a completion.
            claim = second.first("task.claimed")
            assert claim is not None
            complete = CompleteClaim(claim.wire["payload"]["claim_id"], claim_next=ClaimNext(QUEUE, agents[1]))
            _, ended = await asyncio.gather(office.do(last, contents=(last_text,)), office.do(complete, reply=_titles))
            assert ended.reply == ["Number 2"]

    asyncio.run(whole())
