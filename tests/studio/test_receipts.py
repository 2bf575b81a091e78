"""Receipts in the browser: verified by the page itself, refused when anything in them was changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from redkey.client import RedKey
from redkey.client.resources.receipts import Receipt
from tests.harness.whole_receipt import whole_receipt
from tests.ledger.test_verify import leaves, with_value
from tests.studio.conftest import OpenTab, Tab
from tests.studio.scene import Scene


def _receipt(rk: RedKey, scene: Scene) -> Receipt:
    event = next(one for one in rk.tasks.events(scene.tasks["edit"]) if one.type == "task.complete")
    found = rk.receipts.get(event.event_id)
    while found.verification.status == "pending":
        found = rk.receipts.get(event.event_id)
    return found


def _judged(tab: Tab, file: Path) -> str:
    """What the page says of a file."""
    tab.page.set_input_files("input[type=file]", file)
    tab.page.get_by_text(file.name).wait_for()
    return tab.page.locator(".drop ~ [role=status], .drop ~ [role=alert]").inner_text()


def test_a_receipt_is_verified_in_the_page(tab: Tab, rk: RedKey, scene: Scene) -> None:
    found = _receipt(rk, scene)
    tab.go(f"receipt/{found.event_id}")
    tab.sees("covered by a signed checkpoint")
    tab.page.get_by_role("button", name="Verify").click()
    tab.sees("Verified in this browser.")
    tab.sees("✓ integrity")
    tab.sees("✓ signed")
    tab.sees("– anchored")
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="Download").click()
    assert json.loads(Path(saved.value.path()).read_bytes()) == json.loads(found.document)


def test_a_receipt_that_was_changed_is_refused(tab: Tab, rk: RedKey, scene: Scene, tmp_path: Path) -> None:
    """Each value of the document, one at a time; the tests of the verifier itself try much more."""
    document: dict[str, Any] = json.loads(_receipt(rk, scene).document)
    tab.go("ledger")
    whole = tmp_path / "whole.json"
    whole.write_text(json.dumps(document))
    assert "Verified in this browser." in _judged(tab, whole)
    changed = [(path, value) for path, value in leaves(document) if isinstance(value, str) and value]
    for number, (path, value) in enumerate(changed):
        other = value[:-2] + ("AA" if value[-2:] != "AA" else "BB")
        file = tmp_path / f"changed-{number}.json"
        file.write_text(json.dumps(with_value(document, path, other)))
        assert "Not verified." in _judged(tab, file), path


def test_a_file_that_is_dropped_on_the_page_is_verified(tab: Tab, rk: RedKey, scene: Scene) -> None:
    tab.go("ledger")
    document = _receipt(rk, scene).document.decode()
    dropped = tab.page.evaluate_handle(
        "(text) => { const data = new DataTransfer(); data.items.add(new File([text], 'dropped.json')); return data; }",
        document,
    )
    tab.page.locator(".drop").dispatch_event("drop", {"dataTransfer": dropped})
    tab.sees("dropped.json")
    tab.sees("Verified in this browser.")


def test_a_receipt_of_another_log_and_a_file_that_is_none_are_refused(tab: Tab, scene: Scene, tmp_path: Path) -> None:
    tab.go("ledger")
    for name, data in (("other.json", whole_receipt()), ("text.json", b"no receipt"), ("empty.json", b"")):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        assert "Not verified." in _judged(tab, tmp_path / name)


def test_a_receipt_without_a_login(open_tab: OpenTab, rk: RedKey, scene: Scene) -> None:
    """Closed where the workspace shows its receipts to nobody, open where it does."""
    rk.workspaces.set_policy(scene.workspace_id, receipts={"public": False})
    found, tab = _receipt(rk, scene), open_tab()
    tab.page.goto(f"{tab.server.url}/studio/#/receipt/{found.event_id}")
    tab.sees("This receipt is not public.")
    tab.errors.clear()  # The browser writes of the 401 itself.
    rk.workspaces.set_policy(scene.workspace_id, receipts={"public": True})
    tab.page.reload()
    tab.sees("task.complete · record")
    tab.page.get_by_label("Keys of the log").fill("\n".join(rk.checkpoints.latest().keys))
    tab.page.get_by_role("button", name="Verify").click()
    tab.sees("Verified in this browser.")


def test_the_address_of_a_receipt_leads_to_the_page_that_verifies_it(
    open_tab: OpenTab, rk: RedKey, scene: Scene
) -> None:
    """Where receipts are public, a third party needs nothing but the link."""
    rk.workspaces.set_policy(scene.workspace_id, receipts={"public": True})
    found, tab = _receipt(rk, scene), open_tab()
    tab.page.goto(f"{tab.server.url}/receipts/{found.event_id}")
    tab.page.get_by_role("link", name="Verify it in your browser").click()
    tab.sees("task.complete · record")
    tab.page.get_by_role("button", name="Verify").click()
    tab.sees("✓ integrity")
