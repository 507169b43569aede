# SPDX-License-Identifier: Apache-2.0
"""Renders findings as text, JSON, SARIF and workflow commands of GitHub."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import quote

import click

from catalog.secret_looks import without_tokens
from catalog.version import VERSION
from launcher.escaping import terminal_line
from schemas.findings import Finding, Path, dotted_path
from schemas.judge import Judged, titles_by_code
from schemas.load import stack_name
from schemas.name_suggestions import count_noun
from schemas.source import Source
from trainyard.cli.out import print_data, print_json, say_in_colour
from trainyard.local.places import ProjectFileError, project_stacks
from trainyard.markup import escape_annotation, escape_sarif

Renderer = Callable[[Sequence[Judged], bool], str]

_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}
# A line with one of these findings holds a secret in plain text, so it is not shown again.
# The beginning of a command in remedies. The next word is the stack.
_ON_STACK = "trainyard secret set"
_SECRET_CODES = frozenset({"TY015", "TY502", "TY503", "TY504"})
# Line breaks as YAML counts them.
_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
# A value under these keys may be a secret, even if a typing error keeps it from being recognised.
_SECRET_PLACES = frozenset({"env", "secrets"})
_SECRET_WORDS = r"(?:password|passwd|token|secret|credential|api[_ ]?key|private[_ ]?key)"
_SECRET_KEY = re.compile(_SECRET_WORDS, re.IGNORECASE)
_SECRET_LINE = re.compile(
    _SECRET_WORDS + r"\w{0,40}[\"']?\s{0,9}[:=](?!\s*(?:\{\s*secure\b|$))"
    r"|://[^/\s:@]+:[^/\s@]+@",
    re.IGNORECASE,
)


def show_findings(judged: Sequence[Judged], form: str) -> None:
    """Print findings in one of these forms."""
    colour = form == "text" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    rendered = without_tokens(RENDERERS[form](judged, colour))
    if form == "text":
        say_in_colour(rendered, colour)
    else:
        (print_data if form == "github" else print_json)(rendered)


def all_findings(judged: Sequence[Judged]) -> list[Finding]:
    return [finding for stack in judged for finding in stack.findings]


def findings_text(judged: Sequence[Judged], colour: bool) -> str:
    """One block for each finding, and a summary line."""

    def paint(value: str, **style: Any) -> str:
        return click.style(value, **style) if colour else value

    lines: list[str] = []
    for stack in judged:
        shown_lines = _source_lines(stack)
        for finding in stack.findings:
            where = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part)
            head = paint(f"{finding.severity} {finding.code}", fg=_COLOURS[finding.severity], bold=True)
            path = dotted_path(finding.path)
            message = terminal_line(f"{path}: " if path else "") + terminal_line(finding.message)
            lines.append(f"{terminal_line(where)}: {head} {message}")
            is_shown = 0 < finding.line <= len(shown_lines) and not _SECRET_PLACES & set(finding.path)
            if is_shown and (line := shown_lines[finding.line - 1][:400].strip()[:160]):
                lines.append(f"    {terminal_line(line)}")
            lines.append(f"    {paint('remedy:', bold=True)} {terminal_line(_remedy_from_here(finding))}")
    return "\n".join([*lines, findings_summary(judged)])


def _remedy_from_here(finding: Finding) -> str:
    """The remedy, with commands that name the file where its stack is not found by its name from this folder."""
    if not finding.file or not (file := FilePath(finding.file)).is_file():
        return finding.remedy
    with suppress(ProjectFileError):
        if (project_stacks() / file.name).resolve() == file.resolve():
            return finding.remedy
    command = f"{_ON_STACK} {stack_name(file)} "
    return finding.remedy.replace(command, f"{_ON_STACK} {shlex.quote(str(finding.file))} ")


def _source_lines(judged: Judged) -> list[str]:
    """The file's lines; a line that holds a secret is empty."""
    lines = _LINE_BREAK.split(judged.source.text)
    hidden = {finding.line for finding in judged.findings if finding.code in _SECRET_CODES}
    # A value, in any style of YAML, extends to the next key.
    marks = sorted(judged.source.marks.items(), key=lambda mark: mark[1])
    for at, (path, (line, _)) in enumerate(marks):
        if _may_be_secret(path, judged.source):
            end, column = marks[at + 1][1] if at + 1 < len(marks) else (len(lines) + 1, 1)
            begins_its_line = end > len(lines) or not lines[end - 1][: column - 1].strip(" -")
            hidden |= {line, *range(line, end if begins_its_line else end + 1)}
    return [
        "" if number in hidden or _SECRET_LINE.search(line) else without_tokens(line)
        for number, line in enumerate(lines, 1)
    ]


def _may_be_secret(path: Path, source: Source) -> bool:
    """Whether the key of a value looks like a secret's. An encrypted value (`secure`) may be shown."""
    if "secure" in path[-1:] or (*path, "secure") in source.marks:
        return False
    return bool(_SECRET_PLACES & set(path[:-1])) or any(_SECRET_KEY.search(str(part)) for part in path)


def findings_summary(judged: Sequence[Judged]) -> str:
    counts = Counter(finding.severity for finding in all_findings(judged))
    counted = [count_noun(counts[severity], severity) for severity in ("error", "warning", "note") if counts[severity]]
    return f"{count_noun(len(judged), 'file')} checked: {', '.join(counted) or 'nothing to complain about'}"


def findings_json(judged: Sequence[Judged], _: bool) -> str:
    findings = [
        {
            "code": finding.code,
            "severity": finding.severity,
            "file": finding.file,
            "line": finding.line,
            "column": finding.column,
            "path": list(finding.path),
            "message": finding.message,
            "remedy": finding.remedy,
        }
        for finding in all_findings(judged)
    ]
    return json.dumps({"files": [stack.source.file for stack in judged], "findings": findings}, indent=2)


def findings_as_annotations(judged: Sequence[Judged], _: bool) -> str:
    """Workflow commands that GitHub shows beside the lines of a pull request."""
    kinds = {"error": "error", "warning": "warning", "note": "notice"}
    lines = []
    for finding in all_findings(judged):
        place = {"file": finding.file, "line": finding.line, "col": finding.column, "title": finding.code}
        properties = ",".join(f"{key}={escape_annotation(str(value), True)}" for key, value in place.items() if value)
        path = dotted_path(finding.path)
        message = f"{f'{path}: ' if path else ''}{finding.message}\n{finding.remedy}"
        lines.append(f"::{kinds[finding.severity]} {properties}::{escape_annotation(message)}")
    return "\n".join([*lines, findings_summary(judged)])


def findings_sarif(judged: Sequence[Judged], _: bool) -> str:
    """SARIF 2.1.0, for code scanning."""
    findings = all_findings(judged)
    used = {finding.code for finding in findings}
    results = []
    for finding in findings:
        place: dict[str, Any] = {"artifactLocation": {"uri": quote(os.fsencode(finding.file.replace("\\", "/")))}}
        if finding.line:
            place["region"] = {"startLine": finding.line, "startColumn": max(1, finding.column)}
        location: dict[str, Any] = {"physicalLocation": place}
        if path := dotted_path(finding.path):
            location["logicalLocations"] = [{"fullyQualifiedName": terminal_line(path)}]
        result = {
            "ruleId": finding.code,
            "level": finding.severity,
            "message": {"text": escape_sarif(f"{finding.message}. {finding.remedy}")},
            "locations": [location],
        }
        results.append(result)
    driver = {
        "name": "trainyard",
        "semanticVersion": VERSION,
        "rules": [
            {"id": code, "shortDescription": {"text": title}}
            for code, title in titles_by_code().items()
            if code in used
        ],
    }
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json.dumps(log, indent=2)


RENDERERS: Mapping[str, Renderer] = {
    "text": findings_text,
    "json": findings_json,
    "sarif": findings_sarif,
    "github": findings_as_annotations,
}
