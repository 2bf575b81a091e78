"""Receipts in the browser: verified by the page itself, refused when anything in them was changed."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import orjson
import pytest

from redkey.client import RedKey
from redkey.client.resources.receipts import Receipt
from redkey.ledger.verify import LEVELS, Policy, Verdict, verify_receipt
from tests.harness.small_log import SmallLog
from tests.harness.whole_receipt import anchor_rows, whole_policy, whole_receipt
from tests.ledger import test_verify
from tests.ledger.test_verify import LONG
from tests.studio.conftest import OpenTab, Tab
from tests.studio.scene import Scene
from tests.typescript.test_receipts import NO_RECEIPTS, every_change

# Drops each file on the page, one after the other, and returns what the page says of it.
_DROP = """async (files) => {
  const area = document.querySelector(".drop");
  const beside = (what) => area.parentElement.querySelector(what);
  const said = [];
  for (const [number, file] of files.entries()) {
    const name = `case-${number}.json`;
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(atob(file), (one) => one.charCodeAt(0))], name));
    area.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
    const until = performance.now() + 60000;
    do {
      if (performance.now() > until) throw new Error(`no verdict on ${name}`);
      await new Promise((resolve) => setTimeout(resolve));
    } while (beside("p.soft")?.textContent !== name || !beside(".drop ~ [role=status], .drop ~ [role=alert]"));
    said.push(area.parentElement.innerText);
  }
  return said;
}"""


@dataclass(frozen=True)
class Refused:
    """A receipt that the first verifier refused, with its reasons."""

    document: bytes
    policy: Policy
    codes: tuple[str, ...]


def _attacks(monkeypatch: pytest.MonkeyPatch) -> list[Refused]:
    """Return what the tests of the first verifier make and see refused, except every value and bit one by one."""
    found: list[Refused] = []
    before = test_verify.refused

    def refused(document: Any, codes: Sequence[str] = (), policy: Policy | None = None) -> Verdict:
        policy = whole_policy() if policy is None else policy
        verdict = before(document, codes, policy)
        found.append(Refused(orjson.dumps(document), policy, tuple(codes)))
        return verdict

    monkeypatch.setattr(test_verify, "refused", refused)
    for name, attack in list(vars(test_verify).items()):
        # Those with parameters, and those named so, try thousands of changes.
        is_test = name.startswith("test_") and "every" not in name and not hasattr(attack, "hypothesis")
        if is_test and not signature(attack).parameters:
            attack()
    return found


def _trusted(policy: Policy) -> dict[str, str]:
    """What a reader enters to say the same as a policy."""
    keys = [f"{one.key}" + ("" if one.retired is None else f" retired {one.retired}") for one in policy.keys]
    return {
        "Keys of the log": "\n".join(keys),
        "Keys of witnesses": "\n".join(str(one) for one in policy.witnesses),
        "Signatures needed": "" if policy.quorum is None else str(policy.quorum),
        "Answer of a mirror node (JSON)": json.dumps({"messages": anchor_rows()[1:]}) if policy.mirror else "",
    }


def _judge(tab: Tab, trusted: dict[str, str], documents: Sequence[bytes]) -> list[str]:
    """What the page says of files, with these inputs."""
    page = tab.page
    if not page.get_by_label("Keys of witnesses").is_visible():
        page.get_by_text("Witnesses and mirror").click()
    for label, text in trusted.items():
        page.get_by_label(label).fill(text)
    said: list[str] = page.evaluate(_DROP, [b64encode(one).decode() for one in documents])
    assert len(said) == len(documents)
    return said


def _receipt(rk: RedKey, scene: Scene) -> Receipt:
    event = next(one for one in rk.tasks.events(scene.tasks["edit"]) if one.type == "task.complete")
    until = monotonic() + 60
    while (found := rk.receipts.get(event.event_id)).verification.status == "pending":
        assert monotonic() < until, "the record was never covered by a checkpoint"
        sleep(0.05)
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
    tab.sees("– witnessed")
    # Each level that does not hold says why.
    tab.sees("no witness key was given to check with; nobody cosigned.")
    tab.sees("the receipt carries no anchor, and no mirror answer was given.")
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="Download").click()
    assert json.loads(Path(saved.value.path()).read_bytes()) == json.loads(found.document)


def test_every_level_is_verified_in_the_page(tab: Tab, scene: Scene, tmp_path: Path) -> None:
    tab.go("ledger")
    file = tmp_path / "whole.json"
    file.write_bytes(orjson.dumps(whole_receipt()))
    tab.page.get_by_label("Receipt file").set_input_files(file)
    tab.sees("key_other_log")
    (said,) = _judge(tab, _trusted(whole_policy()), [file.read_bytes()])
    assert "Verified in this browser." in said
    assert [level for level in LEVELS if f"✓ {level}" in said] == list(LEVELS)
    # The page judges again as what the reader trusts changes.
    tab.page.get_by_text("Witnesses and mirror").click()
    tab.page.get_by_text("Witnesses and mirror").click()
    tab.page.get_by_label("Signatures needed").fill("3")
    tab.sees("2 of 2 witnesses cosigned, 3 are needed")
    tab.page.get_by_label("Signatures needed").fill("")
    tab.page.get_by_label("Answer of a mirror node (JSON)").fill("no rows")
    tab.sees("The answer of the mirror node is not JSON.")


def test_a_receipt_proves_nothing_without_a_key(tab: Tab, scene: Scene) -> None:
    """Anyone can make a log of his own: integrity alone must not look like a proof."""
    tab.go("ledger")
    documents = [orjson.dumps(whole_receipt()), orjson.dumps(SmallLog(7).receipt(2))]
    _judge(tab, {}, documents[:1])
    nothing = dict.fromkeys(_trusted(Policy()), "")
    for said in _judge(tab, nothing, documents):
        assert "Not proved yet." in said
        assert "✓ integrity" in said
        assert "No key was given to check with" in said
        assert "Verified in this browser." not in said


def test_every_attack_on_the_verifier_is_refused_in_the_page(
    tab: Tab, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forks, retired signers, swapped wires, forged attestations, effects, witnesses, content and anchors."""
    attacks = _attacks(monkeypatch)
    assert len(attacks) > 50
    tab.go("ledger")
    _judge(tab, {}, [attacks[0].document])
    groups: dict[str, list[Refused]] = {}
    for attack in attacks:
        groups.setdefault(json.dumps(_trusted(attack.policy)), []).append(attack)
    for trusted, group in groups.items():
        for attack, said in zip(group, _judge(tab, json.loads(trusted), [one.document for one in group]), strict=True):
            assert "Verified in this browser." not in said, attack
            assert "Not verified." in said, attack
            assert [code for code in attack.codes if code not in said] == [], attack


def test_every_kind_of_change_is_refused_in_the_page(tab: Tab, scene: Scene) -> None:
    """Values, missing and added fields, lists; and what is no receipt at all."""
    step = 1 if LONG else 20
    changes = [orjson.dumps(one) for one in every_change(whole_receipt())]
    tab.go("ledger")
    _judge(tab, {}, changes[:1])
    documents = [*changes[::step], *NO_RECEIPTS]
    passed = [
        document
        for document, said in zip(documents, _judge(tab, _trusted(whole_policy()), documents), strict=True)
        if "Not verified." not in said
    ]
    policy = whole_policy()
    assert [one for one in passed if not verify_receipt(one, policy).holds(*policy.asked)] == []
    assert len(passed) < len(documents) / 10


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
    # No key was entered yet: this is no proof.
    tab.sees("Not proved yet.")
    tab.page.goto(f"{tab.server.url}/receipts/{found.event_id}")
    tab.sees(f"recorded task.complete about task {scene.tasks['edit']}.")
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("link", name="download the receipt").click()
    assert json.loads(Path(saved.value.path()).read_bytes()) == json.loads(found.document)


def test_a_public_receipt_opens_with_a_key_of_another_workspace_and_with_a_token_that_has_ended(
    open_tab: OpenTab, rk: RedKey, scene: Scene
) -> None:
    rk.workspaces.set_policy(scene.workspace_id, receipts={"public": True})
    found = _receipt(rk, scene)
    other = rk.workspaces.create(name="reads-along")
    tab = open_tab().login(other.api_key)
    tab.go(f"receipt/{found.event_id}")
    tab.sees("task.complete · record")
    rk.keys.revoke(scene.workspace_id, (ended := rk.keys.create(scene.workspace_id, scopes=["read"])).key_id)
    late = open_tab()
    late.page.goto(f"{late.server.url}/studio/favicon.svg")
    kept = json.dumps({"key": ended.api_key, "scopes": ["read"], "workspaceId": scene.workspace_id})
    late.page.evaluate("(kept) => sessionStorage.setItem('redkey.session', kept)", kept)
    late.page.goto(f"{late.server.url}/studio/#/receipt/{found.event_id}")
    late.sees("task.complete · record")
    late.errors.clear()  # The browser writes of the 401 itself.
