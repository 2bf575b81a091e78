"""OAuth clients and metadata by their use cases; tokens of keys are in `test_usage`."""

from __future__ import annotations

from pathlib import Path

import pytest

from redkey.commands.decision import Refused
from redkey.services.oauth_clients import find_client
from redkey.services.use_cases.oauth import (
    protected_mcp,
    protected_resource,
    register_client,
    revoke_token,
    server_metadata,
    token,
)
from redkey.shapes.oauth import ClientMetadata, RevocationRequest, TokenRequest
from tests.harness.callers import Callers, with_callers

URI = "http://127.0.0.1/callback"


def test_a_registered_client_is_known_by_its_id_alone(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        head = callers.head
        made = await callers.call(register_client, ClientMetadata((URI,), "An editor"))
        assert (made.client_name, made.redirect_uris, made.token_endpoint_auth_method) == ("An editor", (URI,), "none")
        found = find_client(callers.app.keys, "http://127.0.0.1", made.client_id)
        assert found is not None
        assert (found.name, found.redirect_uris) == ("An editor", (URI,))
        assert find_client(callers.app.keys, "http://127.0.0.1", made.client_id[:-2] + "xx") is None
        assert callers.head == head, "nothing is stored for it"

    with_callers(tmp_path, test)


@pytest.mark.parametrize(
    "asked",
    [
        ClientMetadata((URI,), token_endpoint_auth_method="client_secret_basic"),
        ClientMetadata((URI,), grant_types=("client_credentials",)),
        ClientMetadata((URI,), response_types=("token",)),
        ClientMetadata(()),
        ClientMetadata(("http://example.org/callback",)),
        ClientMetadata(("javascript:alert(1)",)),
    ],
)
def test_a_client_that_could_not_be_held_to_the_rules_is_refused(tmp_path: Path, asked: ClientMetadata) -> None:
    async def test(callers: Callers) -> None:
        with pytest.raises(Refused) as failed:
            await callers.call(register_client, asked)
        assert failed.value.status == 400
        assert failed.value.code in ("invalid_client_metadata", "invalid_redirect_uri")

    with_callers(tmp_path, test)


def test_the_token_of_a_key_ends_with_its_key_alone(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        made = await callers.call(token, TokenRequest("client_credentials"), caller=callers.caller("admin"))
        for one in (made.access_token, "invented"):
            assert (await callers.call(revoke_token, RevocationRequest(one))).status == "revoked"
        assert callers.app.tokens.holder(made.access_token) is not None

    with_callers(tmp_path, test)


def test_each_resource_names_the_server_that_gives_its_tokens(tmp_path: Path) -> None:
    async def test(callers: Callers) -> None:
        issuer = (await callers.call(server_metadata)).issuer
        for use, path in ((protected_resource, ""), (protected_mcp, "/mcp")):
            found = await callers.call(use)
            assert (found.resource, found.authorization_servers) == (f"http://127.0.0.1{path}", (issuer,))

    with_callers(tmp_path, test)
