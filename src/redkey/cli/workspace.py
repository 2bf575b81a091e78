"""`redkey workspace`: list and create workspaces, and set their policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.screen import print_done, print_facts, print_item, tell
from redkey.cli.session import daily, own_workspace
from redkey.cli.values import extensions_option, retry_value

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.policies import RetryPolicyReply, UnverifiedOutputs

_ROUTES_HELP = "Send blocks of this type to these roles (comma-separated, none: only to the humans); may be repeated."
_CAPS_HELP = "The most to spend on one task, workflow or agent, or on a day (UTC); none: no cap. May be repeated."


@click.group()
def command() -> None:
    """List and create workspaces, and set their policies. Each has its own order, ledger and keys."""


_workspace_option = click.option("--workspace", metavar="ID", help="The workspace [your key's own].")


@command.command()
@click.option("--block-route", "routes", multiple=True, metavar="TYPE=ROLES", help=_ROUTES_HELP)
@click.option("--cost-cap", "caps", multiple=True, metavar="SCOPE=USD", help=_CAPS_HELP)
@click.option(
    "--self-approval/--no-self-approval",
    default=None,
    help="Whether a person may decide on gates of their own key's work.",
)
@click.option(
    "--public-receipts/--no-public-receipts",
    default=None,
    help="Whether everyone who has a receipt's link can open it.",
)
@click.option(
    "--unverified-outputs",
    type=click.Choice(["refuse", "allow"]),
    help="Whether required outputs may be links, whose bytes RedKey cannot verify.",
)
@click.option(
    "--retry",
    type=retry_value,
    metavar="NAME=NUMBER,...",
    help="Retry policy of tasks without their own: attempts, delay, backoff, jitter, longest (attempts=3,delay=10).",
)
@_workspace_option
@extensions_option
@daily
def policy(
    rk: RedKey,
    routes: tuple[str, ...],
    caps: tuple[str, ...],
    self_approval: bool | None,
    public_receipts: bool | None,
    unverified_outputs: UnverifiedOutputs | None,
    retry: dict[str, float] | None,
    workspace: str | None,
    extensions: dict[str, Any] | None,
    as_json: bool,
) -> None:
    """Show the policies of a workspace, or set some of them.

    \b
      redkey workspace policy
      redkey workspace policy --block-route ambiguity=role_editor,role_pm --block-route auth=
      redkey workspace policy --self-approval --public-receipts
      redkey workspace policy --cost-cap task=2.50 --cost-cap day=20 --cost-cap agent=
      redkey workspace policy --retry attempts=3,delay=10,backoff=2,jitter=0.1,longest=600
    """
    workspace_id = workspace or own_workspace(rk)
    if routes or caps or unverified_outputs or retry or (self_approval, public_receipts) != (None, None):
        changed = rk.workspaces.set_policy(
            workspace_id,
            block_routes=dict(map(_route, routes)),
            cost_caps=dict(map(_cap, caps)),
            self_approval=self_approval,
            receipts=None if public_receipts is None else {"public": public_receipts},
            unverified_outputs=unverified_outputs,
            retry=retry,
            extensions=extensions,
        )
        if as_json:
            print_item(changed)
        else:
            names = [*changed.block_routes, *(f"cost of a {scope}" for scope in changed.cost_caps)]
            others = {
                "self-approval": changed.self_approval,
                "public receipts": changed.receipts,
                "unverified outputs": changed.unverified_outputs or None,
                "retry": changed.retry,
            }
            names += [name for name, value in others.items() if value is not None]
            tell(f"changed: {', '.join(names)}" if names else "nothing changed")
        return
    found = rk.workspaces.policy(workspace_id)
    if as_json:
        print_item(found)
        return
    shown = [(f"block {kind}", ", ".join(roles) or "-") for kind, roles in found.block_routes.items()]
    shown += [(f"cost cap, {scope}", f"${usd:,.2f}") for scope, usd in found.cost_caps.items()]
    shown += [("self-approval", "yes" if found.self_approval else "no")]
    shown += [("public receipts", "yes" if found.receipts.public else "no")]
    shown.append(("unverified outputs", found.unverified_outputs))
    shown.append(("retry", _retry_words(found.retry)))
    print_facts([("workspace", found.workspace_id), ("rules", found.rules), *shown])


@command.command("raise-rules")
@click.option("--to", "rules", type=click.IntRange(2), default=2, show_default=True, help="The rules.")
@_workspace_option
@extensions_option
@daily
def raise_rules(
    rk: RedKey, rules: int, workspace: str | None, extensions: dict[str, Any] | None, as_json: bool
) -> None:
    """Apply newer rules to later records of a workspace. For operators; this cannot be undone.

    Existing records keep their rules. Servers that do not know the new rules stop serving the workspace, so
    upgrade all of them first.
    """
    raised = rk.workspaces.raise_rules(workspace or own_workspace(rk), rules, extensions=extensions)
    print_done(raised, f"{raised.workspace_id} is under rules {raised.rules}", as_json=as_json)


def _route(text: str) -> tuple[str, list[str]]:
    kind, equals, roles = text.partition("=")
    if not equals:
        raise click.UsageError(f"--block-route {text!r} is not TYPE=ROLES, as in ambiguity=role_pm")
    return kind, [role.strip() for role in roles.split(",") if role.strip()]


def _retry_words(policy: RetryPolicyReply) -> str:
    attempts = f"{policy.max_attempts} attempt{'s' if policy.max_attempts > 1 else ''}"
    if not policy.delay_seconds:
        return attempts
    pause = f"{policy.delay_seconds:g} s before the second, times {policy.backoff:g} for each further one"
    return f"{attempts}, {pause}, at most {policy.longest_delay_seconds:g} s, jitter {policy.jitter:g}"


def _cap(text: str) -> tuple[str, float | None]:
    scope, equals, usd = text.partition("=")
    try:
        cap = float(usd) if usd.strip() else None
    except ValueError:
        equals, cap = "", None
    if not equals:
        raise click.UsageError(f"--cost-cap {text!r} is not SCOPE=USD, as in day=20")
    return scope, cap


add_declared(
    command,
    "workspace",
    {
        "list": Look(
            parts={"WORKSPACE": "workspace_id", "CREATED": "created_at", "NAME": "name"}, empty="no workspaces"
        ),
        "create": Look(told="{workspace_id}\n\n  {api_key}\n", hint="keep the key: it is not shown again"),
    },
)
