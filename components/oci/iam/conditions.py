# SPDX-License-Identifier: Apache-2.0
"""Reads conditions: what follows `where` in a statement, and the matching rules of dynamic groups."""

import re
from collections.abc import Callable

from components.oci.iam.clock import TIME_OPERATORS, is_time_value
from components.oci.iam.scanner import Scanner
from components.oci.iam.statement import (
    OPERATORS,
    PATTERN_BODY,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    Operator,
    Pattern,
    Text,
    Value,
    Variable,
)

_PATTERN = re.compile(rf"/({PATTERN_BODY})/(?=[\s,}})]|$)")
# Far deeper than people nest, far less than Python's stack.
_DEEPEST = 16

Leaf = Callable[[Scanner], Condition]


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
    """An operator out of those that may stand here."""
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
