# SPDX-License-Identifier: Apache-2.0
"""Policy statements as frozen values, and pattern matching with `*`.

Every value can be printed and parsed back. A value that OCI's language cannot express raises StatementError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

Verb = Literal["inspect", "read", "use", "manage"]
VERBS: tuple[Verb, ...] = get_args(Verb)

Trust = Literal["documented", "mixed", "inferred"]

SubjectKind = Literal["any-user", "any-group", "group", "dynamic-group", "service"]
SUBJECT_KINDS: tuple[SubjectKind, ...] = get_args(SubjectKind)

Operator = Literal["=", "!=", "in", "before", "after", "between"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PERMISSION = re.compile(r"[A-Z][A-Z0-9_]*")
_OCID = re.compile(r"ocid[0-9]*\.[A-Za-z0-9_.-]+")
_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+")
# A slash belongs to the pattern, unless a space, a separator or the end of the text follows.
PATTERN_BODY = r"(?:[^/'\n\r{}(),]|/(?![\s,})]|$))*"
_PATTERN = re.compile(PATTERN_BODY)


def fits_pattern(pattern: str, text: str) -> bool:
    """Whether the text matches a pattern with `*`. It never backtracks, so many `*` take no longer than one."""
    first, *middle = pattern.split("*")
    if not middle:
        return text == pattern
    last = middle.pop()
    if not text.startswith(first) or not text.endswith(last) or len(first) + len(last) > len(text):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        start = text.find(piece, position, end)
        if start < 0:
            return False
        position = start + len(piece)
    return True


class StatementError(ValueError):
    """A policy statement or matching rule that OCI would refuse. `column` counts from 1; None if there is no text."""

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message if column is None else f"column {column}: {message}")
        self.message = message
        self.column = column


def nearest_word(word: str, words: Iterable[str]) -> str:
    """`; did you mean …?` with the most similar word, or "". It ends an error message."""
    # Imported here, because only error messages need it.
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in words}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"; did you mean `{by_lower[close[0]]}`?" if close else ""


def _require(ok: object, message: str) -> None:
    if not ok:
        raise StatementError(message)


def _require_quotable(text: str, what: str) -> None:
    _require(
        text and text == text.strip() and text.isprintable(), f"{what} {text!r}: empty, blank at an end or unprintable"
    )
    _require("'" not in text, f"{what} {text!r}: a quote cannot be written in OCI's policy language")


@dataclass(frozen=True, slots=True)
class Named:
    """A group, dynamic group or service by name. Without a domain, OCI looks in the Default domain."""

    name: str
    domain: str | None = None

    def __post_init__(self) -> None:
        for text in (self.name, self.domain):
            if text is not None:
                _require_quotable(text, "name")
                _require("/" not in text, f"name {text!r}: a slash separates domain and name")


@dataclass(frozen=True, slots=True)
class Identified:
    """A group or dynamic group by OCID."""

    ocid: str

    def __post_init__(self) -> None:
        _require(_OCID.fullmatch(self.ocid), f"{self.ocid!r} is not an OCID")


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject: everyone of a kind, or a list of members of one kind."""

    kind: SubjectKind
    members: tuple[Named | Identified, ...] = ()

    def __post_init__(self) -> None:
        everyone = self.kind in ("any-user", "any-group")
        _require(
            everyone != bool(self.members),
            f"subject {self.kind}: " + ("takes no names" if everyone else "needs a name"),
        )
        plain = all(isinstance(member, Named) and member.domain is None for member in self.members)
        _require(self.kind != "service" or plain, "services go by plain names")


@dataclass(frozen=True, slots=True)
class VerbGrant:
    """A grant such as `read buckets`. `trust`: how certain it is that the verb covers the needed permissions."""

    verb: Verb
    resource_type: str
    trust: Trust = field(default="documented", compare=False)

    def __post_init__(self) -> None:
        _require(self.verb in VERBS, f"{self.verb!r} is not one of {', '.join(VERBS)}")
        _require(
            _WORD.fullmatch(self.resource_type) and self.resource_type == self.resource_type.lower(),
            f"{self.resource_type!r} is not a resource type",
        )


@dataclass(frozen=True, slots=True)
class PermissionGrant:
    """A grant such as `{BUCKET_READ, OBJECT_READ}`: exactly these permissions, without a resource type."""

    permissions: tuple[str, ...]
    trust: Trust = field(default="documented", compare=False)

    def __post_init__(self) -> None:
        _require(self.permissions, "a permission list must not be empty")
        for name in self.permissions:
            _require(_PERMISSION.fullmatch(name), f"{name!r} is not a permission")


@dataclass(frozen=True, slots=True)
class Tenancy:
    """The whole tenancy."""


@dataclass(frozen=True, slots=True)
class CompartmentName:
    """A compartment by its path below the policy's own compartment: `("A", "B")` is `A:B`."""

    path: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(self.path, "a compartment needs a name")
        for part in self.path:
            _require_quotable(part, "compartment")
            _require(":" not in part, f"compartment {part!r}: a colon separates the parts of a path")


@dataclass(frozen=True, slots=True)
class CompartmentId:
    """A compartment by OCID."""

    ocid: str

    def __post_init__(self) -> None:
        _require(_OCID.fullmatch(self.ocid), f"{self.ocid!r} is not an OCID")


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted value."""

    text: str

    def __post_init__(self) -> None:
        _require(
            self.text.isprintable() and "'" not in self.text, f"value {self.text!r}: quotes and control characters"
        )


@dataclass(frozen=True, slots=True)
class Pattern:
    """`/prefix*/`: `*` stands for any characters."""

    text: str

    def __post_init__(self) -> None:
        _require(self.text and self.text.isprintable() and _PATTERN.fullmatch(self.text), f"pattern {self.text!r}")
        _require(self.text == self.text.strip(), f"pattern {self.text!r}: blank at an end")


@dataclass(frozen=True, slots=True)
class Variable:
    """The value of another variable of the request."""

    name: str

    def __post_init__(self) -> None:
        _require(_VARIABLE.fullmatch(self.name), f"{self.name!r} is not a variable")


Value = Text | Pattern | Variable


@dataclass(frozen=True, slots=True)
class Comparison:
    """One condition. `between` has two values, `in` any number, the others one."""

    variable: str
    operator: Operator
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _require(_VARIABLE.fullmatch(self.variable), f"{self.variable!r} is not a variable")
        _require(self.operator in OPERATORS, f"{self.operator!r} is not an operator")
        wanted = {"between": len(self.values) == 2, "in": len(self.values) >= 1}
        _require(wanted.get(self.operator, len(self.values) == 1), f"`{self.operator}`: wrong number of values")
        plain = all(isinstance(value, Text) for value in self.values)
        _require(self.operator in ("=", "!=") or plain, f"`{self.operator}` takes quoted values")


@dataclass(frozen=True, slots=True)
class Exists:
    """The condition that a tag exists, with any value. Only in matching rules of dynamic groups."""

    variable: str

    def __post_init__(self) -> None:
        _require(_VARIABLE.fullmatch(self.variable), f"{self.variable!r} is not a variable")


@dataclass(frozen=True, slots=True)
class AllOf:
    """A condition that is true if every part is."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _require(self.parts, "`all` needs a condition")


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A condition that is true if at least one part is."""

    parts: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _require(self.parts, "`any` needs a condition")


Condition = Comparison | Exists | AllOf | AnyOf
Grant = VerbGrant | PermissionGrant
Location = Tenancy | CompartmentName | CompartmentId


@dataclass(frozen=True, slots=True)
class Statement:
    """`Allow <subject> to <grant> in <location> where <condition>`."""

    subject: Subject
    grant: Grant
    location: Location
    condition: Condition | None = None


def group_subject(name: str, domain: str | None = None) -> Subject:
    """The users of one group, by name."""
    return Subject("group", (Named(name, domain),))


def dynamic_group_subject(name: str, domain: str | None = None) -> Subject:
    """The resources of one dynamic group, by name."""
    return Subject("dynamic-group", (Named(name, domain),))


def service_subject(name: str) -> Subject:
    """One of Oracle's own services."""
    return Subject("service", (Named(name),))


def equals_text(variable: str, value: str) -> Comparison:
    """`variable = 'value'`, the condition nearly all statements need."""
    return Comparison(variable, "=", (Text(value),))
