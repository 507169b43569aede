# SPDX-License-Identifier: Apache-2.0
"""All commands print through this module, so that nothing they print can control the terminal or shows a token.

A test checks this for all code (tests/contract/test_doors_out.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

import click

from catalog.secret_looks import without_tokens
from launcher.escaping import escape_json, terminal_line, terminal_lines

# Colours, as click writes them. No other escape sequence is printed.
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_UP, _ERASE_BELOW, _THIS_LINE = "\x1b[{}F", "\x1b[J", "\r\x1b[K"


def say(text: object = "", err: bool = False) -> None:
    """Print lines for people."""
    click.echo(_escaped_lines(str(text)), err=err)


def say_aside(text: object) -> None:
    """Print progress for people: to stderr, because stdout belongs to the result."""
    say(text, err=True)


def say_in_colour(text: str, colour: bool) -> None:
    """Print lines with click's own colours. The caller has escaped foreign text with `terminal`."""
    if not colour:
        say(text)
        return
    click.echo(_but_colours(text, _escaped_lines), color=True)


def _but_colours(text: str, escape: Callable[[str], str]) -> str:
    parts = _COLOUR.split(text)
    return "".join(part if place % 2 else escape(part) for place, part in enumerate(parts))


def redraw_lines(lines: Sequence[str], over: int) -> None:
    """Draw lines, with click's own colours, over the last `over` lines. The caller has escaped foreign text."""
    back = _UP.format(over) if over else ""
    click.echo(back + _ERASE_BELOW + "\n".join(_but_colours(line, _escaped_line) for line in lines), color=True)


def redraw_aside(line: str) -> None:
    """Draw one line of progress over the one before, on stderr. An empty line erases it."""
    click.echo(_THIS_LINE + _escaped_line(line), nl=False, err=True, color=True)


def print_data(text: str) -> None:
    """Print text for programs: Markdown, workflow commands, a shell's words. The caller escapes it for its reader, and
    masks tokens: a shell's words may be one."""
    click.echo("".join(letter if letter.isprintable() or letter == "\n" else "\ufffd" for letter in text))


def print_json(text: str) -> None:
    """Print JSON, SARIF included."""
    print_data(escape_json(without_tokens(text)))


def ask_yes_or_no(question: str, abort: bool = False) -> bool:
    """Ask yes or no. Without a terminal nobody can answer, so the command ends and names `--yes`."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"There is no terminal to ask at: {terminal_line(question)}\nTo answer yes, add --yes.")
    return click.confirm(terminal_line(question), abort=abort)


def ask_text(question: str, default: str) -> str:
    """Ask for a value. The default is shown, and taken for an empty answer."""
    answer: str = click.prompt(terminal_line(question), default=terminal_line(default), err=True)
    return answer.strip()


def ask_secret(question: str) -> str:
    """Ask for a value that the terminal does not show."""
    answer: str = click.prompt(terminal_line(question), hide_input=True, err=True)
    return answer


def escape_message(problem: click.ClickException) -> click.ClickException:
    """The same error with an escaped message, because messages often repeat what somebody wrote."""
    problem.message = _escaped_lines(str(problem.message))  # type: ignore[misc]  # click reads it when it shows it
    return problem


def escape_unencodable() -> None:
    """A name that does not fit the terminal's encoding is shown with escapes, not with a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _escaped_line(text: str) -> str:
    return terminal_line(without_tokens(text))


def _escaped_lines(text: str) -> str:
    return terminal_lines(without_tokens(text))
