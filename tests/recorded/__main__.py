# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.recorded`: compares all recorded reviews and drifts with what the commands print now.

`--renew` records what they print now. `--draw` first draws other changes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tests.recorded import draw, draw_drifts, drifts, live_drifts, reviews


@click.command()
@click.option("--renew", is_flag=True, help="Record what the commands print now.")
@click.option("--draw", "anew", is_flag=True, help="Draw the changes again, then record.")
def main(renew: bool, anew: bool) -> None:
    """Compare recorded reviews and drifts with what the commands print now."""
    if anew:
        draw.draw_rounds(reviews.REVIEWS)
        draw_drifts.draw_drifts()
    if renew or anew:
        for name in drifts.drift_names():
            drifts.renew_drift(name)
        with TemporaryDirectory() as home:
            live_drifts.renew_live(Path(home))
        for name in reviews.rounds():
            click.echo(f"reviews, round {name}", err=True)
            reviews.renew_round(name)
        return
    differing = [text for name in drifts.drift_names() if (text := drifts.difference(name))]
    with TemporaryDirectory() as home:
        differing += live_drifts.live_differences(live_drifts.live_changes(), Path(home))
    for text in differing:
        click.echo(text)
    for name in reviews.rounds():
        click.echo(f"reviews, round {name}", err=True)
        if text := reviews.differences(name):
            click.echo(text)
            differing.append(text)
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
