"""`redkey completion`: the script that lets a shell complete commands, options, names and ids."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL.

    \b
      eval "$(redkey completion bash)"      in ~/.bashrc
      eval "$(redkey completion zsh)"       in ~/.zshrc, after compinit
      redkey completion fish > ~/.config/fish/completions/redkey.fish
    """
    from click.shell_completion import get_completion_class

    from redkey.cli import COMPLETES, main

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(kind(main, {}, "redkey", COMPLETES).source())
