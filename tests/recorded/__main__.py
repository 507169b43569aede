# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.recorded`: compares all recorded reviews with what the command prints now.

`--renew` records what it prints now. `--draw` first draws other changes from the examples' stack files.
"""

from __future__ import annotations

import sys

import click

from tests.recorded.draw import draw_rounds
from tests.recorded.reviews import REVIEWS, differences, renew_round, rounds


@click.command()
@click.option("--renew", is_flag=True, help="Record what the commands print now.")
@click.option("--draw", is_flag=True, help="Draw the changes again from the examples' stack files, then record.")
def main(renew: bool, draw: bool) -> None:
    """Compare recorded reviews with what the command prints now."""
    if draw:
        draw_rounds(REVIEWS)
    differing = 0
    for name in rounds():
        click.echo(f"reviews, round {name}", err=True)
        if renew or draw:
            renew_round(name)
        elif text := differences(name):
            click.echo(text)
            differing += 1
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
