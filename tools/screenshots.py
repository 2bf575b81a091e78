"""`python -m tools.screenshots`: the pictures of the Studio in the docs, taken in a real browser.

Pixels differ from machine to machine, so `make verify` compares a hash of the Studio's sources and of this script with
the one that was left when the pictures were taken.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "docs/pictures"
HASH = f"{FOLDER}/sources.sha256"
_SOURCES = (ROOT / "studio" / "src", ROOT / "tools" / "screenshots.py", ROOT / "tests" / "studio" / "scene.py")
# Name -> page, width, colours.
PICTURES = {
    "now": ("now", 1280, "light"),
    "race": ("race", 1280, "light"),
    "run": ("run/{run}", 1280, "light"),
    "receipt": ("receipt/{event}", 1280, "light"),
    "now-narrow": ("now", 390, "dark"),
}


def source_hash() -> str:
    """Return one hash over everything that decides what the pictures show."""
    digest = sha256()
    for source in _SOURCES:
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.is_file():
                digest.update(sha256(path.read_bytes()).digest() + path.relative_to(ROOT).as_posix().encode())
    return digest.hexdigest()


def generated() -> dict[str, bytes]:
    """Return the pictures as they are, and the hash as it must be."""
    kept = {f"{FOLDER}/{name}.png": ROOT / FOLDER / f"{name}.png" for name in PICTURES}
    there = {name: path.read_bytes() for name, path in kept.items() if path.exists()}
    return {**there, HASH: f"{source_hash()}\n".encode()}


def _shoot(folder: Path) -> Iterator[tuple[str, bytes]]:
    from playwright.sync_api import sync_playwright

    from redkey.client import RedKey
    from tests.harness.server import serving
    from tests.studio.scene import build

    program = which("chromium")
    with serving(folder) as server, RedKey(url=server.url, api_key=server.key) as rk, sync_playwright() as playwright:
        scene = build(rk)
        event = next(iter(rk.ledger.query(type="task.complete", order="desc", limit=1)))
        places = {"run": scene.tasks["run"], "event": event.event_id}
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, (place, width, scheme) in PICTURES.items():
            context = browser.new_context(viewport={"width": width, "height": 820}, color_scheme=scheme)  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(server.url)
            page.fill("input[name=key]", server.key)
            page.get_by_role("button", name="Log in with the key").click()
            page.get_by_text("live", exact=True).wait_for()
            page.goto(f"{server.url}/studio/#/{place.format(**places)}")
            page.locator("main h1").first.wait_for(state="attached")
            if name == "receipt":
                page.get_by_role("button", name="Verify").click()
                page.get_by_text("Verified in this browser.").wait_for()
            # The page asks what needs a human at most once a second: let it ask.
            page.wait_for_timeout(1500)
            yield name, page.screenshot()
            context.close()
        scene.close()
        browser.close()


def main() -> int:
    """Take the pictures, and leave the hash."""
    if which("chromium") is None:
        print("the pictures are taken with Chromium: apt-get install chromium")
        return 1
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, picture in _shoot(Path(folder)):
            (ROOT / FOLDER / f"{name}.png").write_bytes(picture)
            print(f"{FOLDER}/{name}.png: {len(picture):,} bytes")
    (ROOT / HASH).write_text(f"{source_hash()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
