"""`redkey migrations`: the SQL of a ledger in PostgreSQL, to read, to apply by hand, or as Supabase migrations."""

from __future__ import annotations

from pathlib import Path

import click

from redkey.cli.report import print_json


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write one file for each migration [print them].",
)
@click.option("--supabase", is_flag=True, help="Name them as Supabase does, and add the rights of its roles.")
@click.option("--broadcast", is_flag=True, help="Also a trigger that announces commits by Supabase Realtime.")
@click.option("--json", "as_json", is_flag=True, help="Report as one JSON document.")
def command(output: Path | None, supabase: bool, broadcast: bool, as_json: bool) -> None:
    """Print the SQL that creates a ledger in PostgreSQL, with its views: the same that redkey serve applies.

    \b
      redkey migrations | psql -v ON_ERROR_STOP=1 -1 postgresql://owner@host/database
      redkey migrations --supabase --output supabase/migrations

    Files that are there stay as they are; one that differs from its migration is refused. Apply the SQL as the role
    that redkey serve connects with: row-level security keeps every other role from writing.
    """
    from redkey.stores.published_sql import scripts, write_scripts

    if broadcast and not supabase:
        raise click.UsageError("--broadcast is for Supabase: add --supabase")
    found = scripts(supabase=supabase, broadcast=broadcast)
    if output is None:
        if as_json:
            print_json({"scripts": [{"name": script.name, "sql": script.sql} for script in found]})
        else:
            click.echo("\n".join(f"-- {script.name}\n{script.sql}" for script in found), nl=False)
        return
    written = write_scripts(output, found)
    if as_json:
        print_json({"directory": str(output), "written": written, "scripts": [script.name for script in found]})
        return
    for script in found:
        click.echo(f"{output / script.name}{'' if script.name in written else '  (was there)'}")
