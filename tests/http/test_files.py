"""Static files: ETags, compression and their own headers, on a real connection."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from redkey.http.exchange import Exchange
from redkey.http.files import Files
from tests.harness.server import Server
from tests.http.hosting import Application, hosted

STYLE = b"body { color: red }\n" * 100
PAGE = b"<!doctype html><title>RedKey</title>"
FOREVER = (b"cache-control", b"public, max-age=31536000, immutable")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder: Path = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_bytes(PAGE)
    assets = folder / "assets"
    assets.mkdir()
    (assets / "style.css").write_bytes(STYLE)
    # A form that was made by the build wins over one made here.
    (assets / "code.js").write_bytes(b"let x = 1;\n" * 200)
    (assets / "code.js.gz").write_bytes(gzip.compress(b"let x = 1;\n" * 200, 1))
    (assets / "picture.png").write_bytes(b"\x89PNG" + bytes(2000))
    files = Files(folder, headers={"assets/": [FOREVER]})

    def answer(exchange: Exchange) -> None:
        file = files.find(exchange.path)
        if file is None:
            exchange.reply(404, b"", b"")
        else:
            file.send(exchange)

    with hosted(Application(answer)) as url, httpx2.Client(base_url=url, timeout=60) as client:
        yield client


def test_a_folder_is_answered_with_its_page(site: httpx2.Client) -> None:
    reply = site.get("/")
    assert (reply.status_code, reply.content, reply.headers["content-type"]) == (200, PAGE, "text/html; charset=utf-8")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_files_have_the_headers_of_the_longest_prefix(site: httpx2.Client) -> None:
    assert site.get("/assets/style.css").headers["cache-control"] == FOREVER[1].decode()


def test_a_compressed_form_is_sent_to_those_who_take_it(site: httpx2.Client) -> None:
    for accepted in ("gzip", "br, gzip;q=0.5", "*"):
        reply = site.get("/assets/style.css", headers={"accept-encoding": accepted})
        assert (reply.headers["content-encoding"], reply.content) == ("gzip", STYLE)
        assert int(reply.headers["content-length"]) < len(STYLE) / 4
    for refused in ("identity", "gzip;q=0", "gzip; q=0.0", "br"):
        reply = site.get("/assets/style.css", headers={"accept-encoding": refused})
        assert ("content-encoding" in reply.headers, reply.content) == (False, STYLE)
        assert reply.headers["vary"] == "accept-encoding"
    assert site.get("/assets/code.js").content == b"let x = 1;\n" * 200
    assert site.get("/assets/code.js.gz").status_code == 404
    assert "content-encoding" not in site.get("/assets/picture.png").headers


def test_a_copy_that_is_current_is_not_sent_again(site: httpx2.Client) -> None:
    etag = site.get("/assets/style.css").headers["etag"]
    for stated in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        reply = site.get("/assets/style.css", headers={"if-none-match": stated})
        assert (reply.status_code, reply.content, reply.headers["etag"]) == (304, b"", etag)
        assert "content-length" not in reply.headers
    assert site.get("/assets/style.css", headers={"if-none-match": '"other"'}).status_code == 200


def test_head_says_what_get_would(site: httpx2.Client) -> None:
    plain = {"accept-encoding": "identity"}
    bare, whole = site.head("/assets/style.css", headers=plain), site.get("/assets/style.css", headers=plain)
    assert (bare.content, bare.headers["content-length"]) == (b"", str(len(whole.content)))


@pytest.mark.parametrize("path", ["/nothing", "/assets", "/assets/", "/%2e%2e/index.html"])
def test_what_is_not_a_file_is_not_there(site: httpx2.Client, path: str) -> None:
    assert site.get(path).status_code == 404


def test_the_documents_of_the_api_are_files(server: Server) -> None:
    with httpx2.Client(base_url=server.url, timeout=60) as client:
        for path in ("/openapi.json", "/docs"):
            first = client.get(path)
            assert first.headers["content-encoding"] == "gzip"
            assert client.get(path, headers={"if-none-match": first.headers["etag"]}).status_code == 304
