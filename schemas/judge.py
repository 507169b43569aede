# SPDX-License-Identifier: Apache-2.0
"""Load and check in one step. The commands and the Pulumi program start here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from catalog.platforms import platforms
from schemas.checks import check, rules
from schemas.facts import Facts, gather
from schemas.findings import Finding, Severity
from schemas.likewise import said_once
from schemas.load import Loaded, load_config, load_file
from schemas.model import Stack
from schemas.platforms import stack_file
from schemas.source import Source, shape_titles

# Findings about several stacks together (schemas/several.py): code -> title and severity.
OF_SEVERAL: dict[str, tuple[str, Severity]] = {
    "TY114": ("subnets of one network overlap", "warning"),
    "TY615": ("two stacks make the same thing", "warning"),
    "TY716": ("the stack under `uses` is on another platform, or in another region or account", "error"),
    "TY717": ("the stack under `uses` does not have what is taken", "error"),
    "TY718": ("stacks use one another in a circle", "error"),
    "TY719": ("the name under `uses` may be a typing mistake", "note"),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A stack with all its findings. `stack` and `facts` are None if the file's shape is wrong: then only what is sound
    of it was judged."""

    stack: Stack | None
    facts: Facts | None
    findings: tuple[Finding, ...]
    source: Source
    folder: Path

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")


def judge_file(file: Path, shown_as: str | None = None) -> Judged:
    """Loads and checks a file. Secrets stay opaque; neither a cloud nor the engine is needed."""
    return _judge(load_file(file, shown_as))


def judge_config(
    values: Mapping[str, str], secret_keys: Collection[str], name: str, file: Path | None = None
) -> Judged:
    """Loads and checks the configuration that Pulumi gives a program."""
    return _judge(load_config(values, secret_keys, name, file))


def _judge(loaded: Loaded) -> Judged:
    facts = gather(loaded.stack, loaded.folder) if loaded.stack is not None else None
    meant = [loaded.located(finding) for finding in _meaning(loaded, facts)]
    findings = sorted((*loaded.findings, *meant), key=lambda finding: (finding.line, finding.column, finding.code))
    return Judged(loaded.stack, facts, tuple(said_once(findings)), loaded.source, loaded.folder)


def _meaning(loaded: Loaded, facts: Facts | None) -> Iterator[Finding]:
    if loaded.stack is not None and facts is not None:
        yield from check(loaded.stack, facts)
    elif loaded.sound is not None:
        from schemas.partial import sound_findings  # files that are right do not wait for this import

        yield from sound_findings(loaded.sound, loaded.folder)


def codes() -> dict[str, str]:
    """Every code and its title, in order."""
    own = [rules(), *(stack_file(name).rules() for name in platforms())]
    meanings = {code: rule.title for each in own for code, rule in each.items()}
    several = {code: title for code, (title, _) in OF_SEVERAL.items()}
    return dict(sorted({**shape_titles(), **meanings, **several}.items()))
