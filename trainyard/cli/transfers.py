# SPDX-License-Identifier: Apache-2.0
"""What commands that move files share: sizes in words, a progress line, and the report at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from launcher.escaping import terminal_line
from schemas.name_suggestions import count_noun
from trainyard.cli.out import say, say_aside
from trainyard.cli.waiting import show_while
from trainyard.files.workers import TransferReport

_MOST_PROBLEMS = 50
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def size_words(count: float) -> str:
    """`1.2 GB`, in powers of a thousand as disks are sold."""
    unit = 0
    while count >= 999.5 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.3g} {_UNITS[unit]}" if unit else f"{count:.0f} {_UNITS[0]}"


@contextmanager
def transfer_progress(report: TransferReport, verb: str) -> Iterator[None]:
    """Shows progress while the block runs: on a terminal in one line, elsewhere in a new line now and then."""
    try:
        with show_while(lambda seconds: _progress_line(report, verb, seconds)):
            yield
    except KeyboardInterrupt:
        say_aside("Stopped. Run the same command again to continue.")
        raise


def _progress_line(report: TransferReport, verb: str, seconds: float) -> str:
    from components.platform.status import duration_text  # short transfers do not need it

    done, expected = report.done_bytes, report.expected_bytes
    rate = report.sent_bytes / seconds
    left = f", {duration_text((expected - done) / rate)} left" if rate and expected > done else ""
    files = count_noun(report.moved + report.there, "file")
    return f"{verb}: {files}, {size_words(done)} of {size_words(expected)}, {size_words(rate)}/s{left}"


def print_problems(report: TransferReport, verb: str) -> None:
    """The files that were not moved, each with its reason."""
    for name, why in report.remarks[:_MOST_PROBLEMS]:
        say_aside(f"{terminal_line(name)}: {terminal_line(why)}")
    for name, why in report.problems[:_MOST_PROBLEMS]:
        say_aside(f"not {verb}: {terminal_line(name)}: {terminal_line(why)}")
    if len(report.problems) > _MOST_PROBLEMS:
        say_aside(f"… and {len(report.problems) - _MOST_PROBLEMS} more")


def end_with(report: TransferReport, verb: str, direction: str, hint: str = "") -> None:
    """Prints the result of a command, and sets its exit code. `hint`: what to do with the files."""
    print_problems(report, verb)
    there = f"; {report.there} already there" if report.there else ""
    say(f"{verb}: {count_noun(report.moved, 'file')}, {size_words(report.sent_bytes)}, {direction}{there}")
    if hint and report.moved + report.there:
        say(hint)
    if report.problems:
        raise click.exceptions.Exit(1)
