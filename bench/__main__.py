# SPDX-License-Identifier: Apache-2.0
"""`python -m bench [NAME…] [--json]`: runs every benchmark of this folder, or those named."""

from __future__ import annotations

import json
import signal
import sys
from importlib import import_module
from pathlib import Path

import click

from bench.harness.rows import Row

HERE = Path(__file__).parent
BENCHES = tuple(sorted(file.stem for file in HERE.glob("[a-z]*.py")))


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHES))
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON, for programs.")
def main(names: tuple[str, ...], as_json: bool) -> None:
    """Compare figures with a floor or a peer from the same run. docs/performance.md explains them."""
    # On SIGTERM, as from `timeout`, exit normally, so that the measured cloud is stopped.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    found = {name: _rows(name, quiet=as_json) for name in names or BENCHES}
    if as_json:
        click.echo(json.dumps({name: [row.plain() for row in rows] for name, rows in found.items()}, indent=2))
    missed = [row.name for rows in found.values() for row in rows if row.met is False]
    if missed:
        click.echo(f"Not met: {'; '.join(missed)}", err=True)


def _rows(name: str, quiet: bool) -> list[Row]:
    rows: list[Row] = import_module(f"bench.{name}").rows()
    if not quiet:
        width = max(len(row.name) for row in rows)
        click.echo(f"\n{name}\n" + "\n".join(_line(row, width) for row in rows))
        sys.stdout.flush()
    return rows


def _line(row: Row, width: int) -> str:
    verdict = {None: "", True: "met", False: "NOT MET"}[row.met]
    aim = f"   {row.aim}: {verdict}" if row.aim else ""
    figures = f"{row.figure:10,.2f} {row.unit:4} {row.floor:12,.2f} {row.unit:4} {row.ratio:7.2f} x"
    return f"  {row.name:{width}} {figures}  {row.against}{aim}"


if __name__ == "__main__":
    main()
