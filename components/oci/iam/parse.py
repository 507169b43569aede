# SPDX-License-Identifier: Apache-2.0
"""Parses policy statements. Errors show the column, and suggest the intended word.

It uses no grammar library: importing one takes longer than importing this whole package, and these error messages are
clearer than a list of acceptable tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from components.oci.iam.evaluate import TIME_OPERATORS, is_time_value
from components.oci.iam.permissions import known_words
from components.oci.iam.scanner import Scanner
from components.oci.iam.statement import (
    OPERATORS,
    PATTERN_BODY,
    SUBJECT_KINDS,
    VERBS,
    AllOf,
    AnyOf,
    Comparison,
    CompartmentId,
    CompartmentName,
    Condition,
    Grant,
    Identified,
    Location,
    Named,
    Operator,
    Pattern,
    PermissionGrant,
    Statement,
    Subject,
    SubjectKind,
    Tenancy,
    Text,
    Value,
    Variable,
    VerbGrant,
    nearest_word,
)

_PATTERN = re.compile(rf"/({PATTERN_BODY})/(?=[\s,}})]|$)")
# The deepest nesting: more than people write, less than Python's stack.
_DEEPEST = 16

Leaf = Callable[[Scanner], Condition]
_OTHER_STATEMENTS = {
    "define": "gives names to other tenancies",
    "endorse": "reaches into other tenancies",
    "admit": "lets other tenancies in",
    "deny": "takes access away",
}


def read_condition(scanner: Scanner, leaf: Leaf, depth: int = 0) -> Condition:
    """A condition; `leaf` reads those that are not `all {…}` or `any {…}`."""
    keyword = scanner.word().lower()
    if keyword not in ("all", "any"):
        return leaf(scanner)
    if depth == _DEEPEST:
        raise scanner.wrong(f"conditions are nested more than {_DEEPEST} deep")
    scanner.take_word()
    if not scanner.accept("{"):
        raise scanner.expected(f"`{{` after `{keyword}`")
    parts = [read_condition(scanner, leaf, depth + 1)]
    while scanner.accept(","):
        parts.append(read_condition(scanner, leaf, depth + 1))
    if not scanner.accept("}"):
        raise scanner.expected("`,` or `}`")
    return AllOf(tuple(parts)) if keyword == "all" else AnyOf(tuple(parts))


def read_operator(scanner: Scanner, allowed: tuple[Operator, ...]) -> Operator:
    """One of the operators that are allowed here."""
    names = " ".join(f"`{name}`" for name in allowed)
    if scanner.peek("=="):
        raise scanner.wrong("expected `=`, found `==`")
    position = scanner.position
    for operator in OPERATORS:
        taken = scanner.accept(operator) if operator in ("=", "!=") else scanner.accept_word(operator)
        if taken and operator in allowed:
            return operator
        if taken:
            raise scanner.wrong(f"`{operator}` does not go with this variable, which takes {names}", position)
    raise scanner.expected(f"one of {names}", allowed)


def read_value(scanner: Scanner) -> Value:
    """A quoted text, a pattern or another variable."""
    position = scanner.position
    text = scanner.quoted()
    if text is not None:
        return scanner.built(position, lambda: Text(text))
    if scanner.peek("/"):
        pattern = scanner.match(_PATTERN)
        if pattern is None:
            raise scanner.wrong("this pattern is never closed: /start*/")
        return scanner.built(position, lambda: Pattern(pattern))
    word = scanner.word()
    if word.lower().startswith(("request.", "target.")):
        return scanner.built(position, lambda: Variable(scanner.take_word()))
    if word:
        raise scanner.wrong(f"expected a value in quotes, found `{word}`; write '{word}'")
    raise scanner.expected("a value in quotes")


def _read_values(scanner: Scanner, operator: Operator) -> tuple[Value, ...]:
    if operator == "between":
        first = read_value(scanner)
        scanner.demand_word("and")
        return first, read_value(scanner)
    if operator != "in":
        return (read_value(scanner),)
    if not scanner.accept("("):
        raise scanner.expected("`(` after `in`")
    values = [read_value(scanner)]
    while scanner.accept(","):
        values.append(read_value(scanner))
    if not scanner.accept(")"):
        raise scanner.expected("`,` or `)`")
    return tuple(values)


def read_comparison(scanner: Scanner) -> Comparison:
    """`request.… = 'value'`, the leaf of a statement's condition."""
    position = scanner.position
    variable = scanner.word()
    if not variable.lower().startswith(("request.", "target.")):
        raise scanner.expected("a variable (request.… or target.…), `all` or `any`", ["all", "any"])
    scanner.take_word()
    operator = read_operator(scanner, TIME_OPERATORS.get(variable.lower(), ("=", "!=")))
    values_at = scanner.position
    values = _read_values(scanner, operator)
    for value in values:
        if isinstance(value, Text) and not is_time_value(variable.lower(), value.text):
            raise scanner.wrong(f"'{value.text}' is not a value of {variable}", values_at)
    return scanner.built(position, lambda: Comparison(variable, operator, values))


def _read_member(scanner: Scanner, kind: SubjectKind) -> Named | Identified:
    if scanner.word().lower() == "id" and kind != "service":
        scanner.take_word()
        return Identified(scanner.ocid())
    position = scanner.position
    first = scanner.name(f"the name of a {kind}")
    if scanner.accept("/"):
        second = scanner.name(f"the name of a {kind}")
        return scanner.built(position, lambda: Named(second, first))
    domain, slash, name = first.partition("/")
    return scanner.built(position, lambda: Named(name, domain) if slash else Named(first))


def _read_subject(scanner: Scanner) -> Subject:
    position = scanner.position
    kind = scanner.word().lower()
    if kind not in SUBJECT_KINDS:
        raise scanner.expected("who: " + ", ".join(SUBJECT_KINDS), SUBJECT_KINDS)
    scanner.take_word()
    if kind in ("any-user", "any-group"):
        return Subject(kind)
    members = [_read_member(scanner, kind)]
    while scanner.accept(","):
        members.append(_read_member(scanner, kind))
    return scanner.built(position, lambda: Subject(kind, tuple(members)))


def _read_grant(scanner: Scanner) -> Grant:
    if scanner.accept("{"):
        position = scanner.position
        names: list[str] = []
        while not names or scanner.accept(","):
            if not scanner.word():
                raise scanner.expected("the name of a permission")
            names.append(scanner.take_word().upper())
        if not scanner.accept("}"):
            raise scanner.expected("`,` or `}`")
        if scanner.word().lower() in known_words():
            raise scanner.wrong(f"a list of permissions takes no resource type: leave out `{scanner.word()}`")
        return scanner.built(position, lambda: PermissionGrant(tuple(names)))
    verb = scanner.word().lower()
    if verb not in VERBS:
        raise scanner.expected("a verb (inspect, read, use, manage) or {PERMISSIONS}", VERBS)
    scanner.take_word()
    position, word = scanner.position, scanner.word()
    if word.lower() in VERBS:
        following = scanner.text[position + len(word) :].split(maxsplit=1)
        meant = f": `{word} {following[0]}`" if following else ""
        raise scanner.wrong(f"two verbs, `{verb}` and `{word}`; keep the one that is meant{meant}")
    if not word:
        raise scanner.expected("a resource type")
    if word.lower() not in known_words():
        raise scanner.wrong(f"`{word}` is not a resource type{nearest_word(word, known_words())}")
    scanner.take_word()
    return VerbGrant(verb, word.lower())


def _read_location(scanner: Scanner) -> Location:
    if scanner.accept_word("tenancy"):
        return Tenancy()
    if not scanner.accept_word("compartment"):
        raise scanner.expected("`tenancy` or `compartment`", ["tenancy", "compartment"])
    if scanner.accept_word("id"):
        return CompartmentId(scanner.ocid())
    position = scanner.position
    if scanner.word().lower() == "where":
        raise scanner.expected("the name of a compartment")
    parts = scanner.name("the name of a compartment").split(":")
    while scanner.accept(":"):
        parts += scanner.name("the name of a compartment").split(":")
    return scanner.built(position, lambda: CompartmentName(tuple(parts)))


def parse_statement(text: str) -> Statement:
    """The statement. Raises `StatementError` if OCI would refuse it."""
    scanner = Scanner(text)
    other = _OTHER_STATEMENTS.get(scanner.word().lower())
    if other:
        raise scanner.wrong(f"`{scanner.word()}` {other}; only `Allow` statements are read here")
    scanner.demand_word("allow")
    subject = _read_subject(scanner)
    scanner.demand_word("to")
    grant = _read_grant(scanner)
    scanner.demand_word("in")
    location = _read_location(scanner)
    condition = read_condition(scanner, read_comparison) if scanner.accept_word("where") else None
    if not scanner.at_end():
        raise scanner.expected("the end" if condition else "`where` or the end", [] if condition else ["where"])
    return Statement(subject, grant, location, condition)
