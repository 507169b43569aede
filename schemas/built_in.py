# SPDX-License-Identifier: Apache-2.0
"""The roles, options and ports of the built-in frameworks as JSON Schema: an editor completes and explains them.

Commands do not need it: they know a framework's columns, and say more than a schema can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catalog import frameworks
from catalog.frameworks import Framework, OptionRow

# What is a key of the job -> the definition that its values meet.
KINDS = {"roles": "#/$defs/role", "options": "#/$defs/option", "ports": "#/$defs/ports"}


def built_in(kind: str) -> dict[str, dict[str, Any]]:
    """Every key that a built-in framework knows, with what each framework says of it, and values to begin with."""
    texts: dict[str, dict[str, list[str]]] = {}
    examples: dict[str, list[Any]] = {}
    for name in frameworks.names():
        for strategy in frameworks.document(name).get("strategies") or (None,):
            for key, text, values in _keys(frameworks.framework(name, strategy), kind):
                named = texts.setdefault(key, {}).setdefault(text, [])
                named += [name] if name not in named else []
                examples.setdefault(key, values)
    return {
        key: {
            "description": " ".join(f"{', '.join(of)}: {text}" for text, of in said.items()),
            "examples": examples[key],
            "$ref": KINDS[kind],
        }
        for key, said in texts.items()
    }


def _keys(row: Framework, kind: str) -> Iterator[tuple[str, str, list[Any]]]:
    if kind == "roles":
        for role, spec in row.roles.items():
            yield role, f"{spec.why}.", [max(1, spec.minimum)]
    elif kind == "options":
        for option, choice in row.options.items():
            yield option, choice.meaning, _values(choice)
    else:
        for port in row.ports:
            yield port.label, f"{port.why}.", [port.default]


def _values(option: OptionRow) -> list[Any]:
    if option.type == "boolean":
        return [True, False]
    return list(option.values) or [option.default]
