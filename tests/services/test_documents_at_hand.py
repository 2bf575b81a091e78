"""A claim comes with what its task asks; a damaged document is the trouble of its task alone."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from redkey.commands.claims import ClaimNext, CompleteClaim
from redkey.commands.tasks import CreateTask
from redkey.ledger import content
from redkey.ledger.ports import Content
from redkey.stores.sqlite import SqliteStore
from tests.desk import QUEUE
from tests.services.office import Office


def _asked(office: Office, title: str) -> tuple[CreateTask, Content]:
    text = content.document({"title": title}, office.ids.nonce())
    return CreateTask("task_" + office.ids.ulid(), QUEUE, content.ref(text)), text


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
            first, second = await asyncio.gather(*(office.do(ClaimNext(QUEUE, agent)) for agent in agents))
            assert first.first("task.claimed") is not None
            assert first.documents == {}
            assert second.documents == {well_text.sha256: well_text.data}

            # What is created and claimed by one unit is at hand too, and so is what comes with a completion.
            claim = second.first("task.claimed")
            assert claim is not None
            complete = CompleteClaim(claim.wire["payload"]["claim_id"], claim_next=ClaimNext(QUEUE, agents[1]))
            _, ended = await asyncio.gather(office.do(last, contents=(last_text,)), office.do(complete))
            assert ended.next is not None
            assert ended.next.documents == {last_text.sha256: last_text.data}

    asyncio.run(whole())
