"""Pages for people: plain HTML with its own style; no scripts, nothing loaded. All text is escaped."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from typing import Any

from redkey.api.call import Raw

STYLE = (
    ":root{color-scheme:light dark;background:Canvas;color:CanvasText;font:16px/1.5 system-ui,sans-serif}"
    "body{max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8884}"
    "code,pre{font:14px/1.4 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}"
    "pre{background:#8881;padding:.8rem;border-radius:.4rem}"
    "h2{margin-top:2.5rem}h3{margin-bottom:.3rem}"
    ".method{display:inline-block;min-width:4.5rem;font-weight:700}"
    "details{margin:.3rem 0}summary{cursor:pointer}"
    "form{max-width:26rem}label{display:block;margin:.8rem 0}"
    "input:not([type=radio]){display:block;box-sizing:border-box;width:100%;font:inherit;padding:.4rem .5rem}"
    "button{font:inherit;padding:.4rem 1rem;margin:.4rem .6rem .4rem 0}"
    ".alert{border-left:.25rem solid #c33;padding-left:.8rem}"
)
_STYLE_HASH = b64encode(sha256(STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'"


def page(title: str, body: Iterable[str], *, status: int = 200, forms: str = "'none'") -> Raw:
    """A whole page; the parts of its body are HTML. `forms`: where its forms may lead, as CSP sources."""
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><main>{''.join(body)}</main></body></html>"
    )
    policy = f"{_POLICY}; form-action {forms}"
    headers = ((b"content-security-policy", policy.encode()), (b"referrer-policy", b"same-origin"))
    return Raw(text.encode(), "text/html; charset=utf-8", status, headers)


def table(rows: Iterable[tuple[str, str]]) -> str:
    """A table with two columns of text."""
    cells = (f"<tr><th>{escape(name)}</th><td><code>{escape(value)}</code></td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def listing(value: Any) -> str:
    """A listing of indented JSON."""
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def receipt_page(document: dict[str, Any]) -> Raw:
    """A receipt as a web page, which carries the receipt itself as a file to save."""
    effect = document["effect"]
    actor, subject = (f"{document[party]['type']} {document[party]['id']}" for party in ("actor", "subject"))
    words = f"{actor} recorded {document['type']} about {subject}."
    file = b64encode(json.dumps(document, ensure_ascii=False).encode()).decode()
    name = f"{document['eventId']}.receipt.json"
    levels = [name for name, holds in document["levels"].items() if holds]
    rows = [
        ("event", document["eventId"]),
        ("type", document["type"]),
        ("sequence", str(document["sequence"])),
        ("time", document["timestamp"]),
        ("actor", actor),
        ("subject", subject),
        ("status", document["verification"]["status"]),
        ("levels", ", ".join(levels) or "none yet"),
        ("effect", effect["status"] + (f" ({effect['reason']})" if effect.get("reason") else "")),
    ]
    return page(
        f"Receipt {document['eventId']}",
        [
            f"<h1>Receipt</h1><p>{escape(words[0].upper() + words[1:])}</p>{table(rows)}",
            "<h2>Check it yourself</h2><p>You do not have to trust this page. "
            f'<a href="../studio/#/receipt/{escape(document["eventId"])}">Verify it in your browser</a>, or '
            f'<a download="{escape(name)}" href="data:application/json;base64,{file}">download the receipt</a> and '
            "verify it offline with the log's public key:</p>"
            f"<pre>redkey receipt verify {escape(name)} --key LOG_KEY</pre>",
            f"<h2>The whole receipt</h2>{listing(document)}",
        ],
    )
