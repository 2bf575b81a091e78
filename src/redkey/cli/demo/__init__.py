"""`redkey demo`: the point of RedKey in one minute, on a real server, with real processes, over the real SDK.

cast     guests, roles, agents and their cards
stage    the server and the agents' processes; `server` and `agent` are these, `tether` ends them with the demo
show     what happens, in order
scene    the state of the demo, folded from the event stream
picture  the scene on a terminal
proof    a receipt, verified and tampered with
"""

from __future__ import annotations

import click

from redkey.cli import INTERRUPTED


@click.command()
@click.option(
    "--agents", type=click.IntRange(2, 6), default=3, show_default=True, help="The number of agents for each role."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses names and how long tasks take.")
@click.option("--plain", is_flag=True, help="Lines of text, as without a terminal.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines.")
@click.pass_context
def command(ctx: click.Context, agents: int, seed: int, plain: bool, as_json: bool) -> None:
    """See agents race for work, one of them killed, and a receipt verified, in one minute and without any setup.

    A server starts in a temporary directory. Agents register by their cards and race, each a process of its own, for
    the tasks of six podcast episodes. One is killed in the middle of its work, and its task moves on. Then the server
    is stopped, and the receipt of a won race is verified without it. Nothing is left behind.
    """
    from redkey.cli.demo.performance import perform

    try:
        ctx.exit(perform(agents, seed, plain=plain, as_json=as_json))
    except KeyboardInterrupt:
        click.echo("redkey: stopped; nothing is left behind", err=True)
        ctx.exit(INTERRUPTED)
