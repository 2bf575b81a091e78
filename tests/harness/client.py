"""A caller for tests. Every reply is validated against the server's own OpenAPI document."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import httpx2
import jsonschema_rs

from redkey.api.openapi import response_of

TIMEOUT_SECONDS = 70.0


class Reply:
    """A reply that the OpenAPI document allows."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.status, self.headers, self.content = response.status_code, response.headers, response.content
        self.media = response.headers.get("content-type", "").partition(";")[0]

    @property
    def json(self) -> Any:
        return self.response.json()

    @property
    def text(self) -> str:
        return self.response.text


class Client:
    """One caller with one key; use `checked=False` for requests whose replies the document does not describe."""

    def __init__(self, url: str, key: str | None = None, *, checked: bool = True, uds: str | None = None) -> None:
        self.url, self.key, self._checked = url, key, checked
        headers = {"authorization": f"Bearer {key}"} if key else {}
        # Plain HTTP on loopback, so no certificates need to be loaded.
        transport = httpx2.HTTPTransport(uds=uds, verify=False)
        self.http = httpx2.Client(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS, transport=transport)

    def request(self, method: str, path: str, **options: Any) -> Reply:
        reply = Reply(self.http.request(method, path, **options))
        if self._checked:
            contract(self.url).check(method, path.partition("?")[0], reply)
        return reply

    def get(self, path: str, **options: Any) -> Reply:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, *, key: str = "", **options: Any) -> Reply:
        headers = {**options.pop("headers", {}), **({"idempotency-key": key} if key else {})}
        return self.request("POST", path, json=body if body is not None else {}, headers=headers, **options)

    def put(self, path: str, data: Any, **options: Any) -> Reply:
        return self.request("PUT", path, content=data, **options)

    def patch(self, path: str, body: Any, **options: Any) -> Reply:
        return self.request("PATCH", path, json=body, **options)

    def delete(self, path: str, **options: Any) -> Reply:
        return self.request("DELETE", path, **options)

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Contract:
    """An OpenAPI document that replies are validated against."""

    def __init__(self, document: dict[str, Any], page: str) -> None:
        self.document, self._page = document, page
        self._components = {"components": document["components"]}
        self.paths = [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path)), path) for path in document["paths"]]
        # Paths without parameters come first, because they are exact.
        self.paths.sort(key=lambda one: one[1].count("{"))
        self._validators: dict[str, jsonschema_rs.Draft202012Validator] = {}

    def operation(self, method: str, path: str) -> dict[str, Any] | None:
        for pattern, template in self.paths:
            if pattern.fullmatch(path):
                found: dict[str, Any] | None = self.document["paths"][template].get(method.lower())
                return found
        return None

    def check(self, method: str, path: str, reply: Reply) -> None:
        """Raise AssertionError if the document does not allow the reply."""
        operation = self.operation("GET" if method == "HEAD" else method, path)
        assert operation is not None, f"{method} {path} is not documented"
        response = operation["responses"].get(str(reply.status))
        assert response is not None, f"{method} {path} answered {reply.status}, which is not documented: {reply.text}"
        response = response_of(self.document, response)
        if not reply.content and reply.status in (202, 204):
            # There is no body to validate.
            return
        content = response.get("content", {}).get(reply.media)
        assert content is not None, f"{method} {path} answered {reply.status} with {reply.media}, not documented"
        if reply.media.endswith("json") and method != "HEAD":
            self.validate(content["schema"], reply.json)
        if reply.media == "application/problem+json" and method != "HEAD":
            anchor = reply.json["type"].removeprefix("/docs#")
            assert f'id="{anchor}"' in self._page, f"{reply.json['type']} leads nowhere"

    def validate(self, schema: dict[str, Any], value: Any) -> None:
        name = json.dumps(schema, sort_keys=True)
        if name not in self._validators:
            self._validators[name] = jsonschema_rs.Draft202012Validator({**schema, **self._components})
        self._validators[name].validate(value)


@cache
def contract(url: str) -> Contract:
    """The contract of a running server."""
    with httpx2.Client(base_url=url, timeout=TIMEOUT_SECONDS) as http:
        return Contract(http.get("/openapi.json").json(), http.get("/docs").text)
