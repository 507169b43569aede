# SPDX-License-Identifier: Apache-2.0
"""Whether a job is valid: by the protocol's shape first, then by the rules that no schema can say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provider.openpai.protocol.rules import RULES, Problem

if TYPE_CHECKING:  # the library takes as long as the rest of a program that judges nothing
    from jsonschema.exceptions import ValidationError

_SCHEMA = Path(__file__).parent / "schema.json"
# A value of a job may be a secret, so a sentence about it shows only so much.
_LONGEST = 200
_AGAIN_AFTER_SUCCESS = (
    "is -2, which starts the job again also after it succeeded, on paid GPUs, until somebody stops it: "
    "give the number of retries"
)
_ENDLESS = "is -1, and the protocol counts from 0: give the number of retries"


def problems(job: Mapping[str, Any]) -> list[Problem]:
    """All that is wrong with a job. The meaning is judged only where the shape is right."""
    shape = [_problem(error) for error in _validator().iter_errors(dict(job))]
    return shape or [problem for rule in RULES for problem in rule(job)]


@cache
def _validator() -> Any:
    from jsonschema.validators import Draft202012Validator, extend

    kind: Any = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    return kind(json.loads(_SCHEMA.read_text(encoding="utf-8")))


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    """`$` is only the end of the text. Python's also allows a last line break."""
    from jsonschema.exceptions import ValidationError

    if validator.is_type(instance, "string") and not re.search(pattern.replace("$", r"\Z"), instance):
        yield ValidationError(f"{instance[:60]!r} does not match {pattern}")


def _problem(error: ValidationError) -> Problem:
    path = tuple(error.absolute_path)
    if path and path[-1] in ("jobRetryCount", "taskRetryCount") and error.validator == "minimum":
        return Problem(path, _AGAIN_AFTER_SUCCESS if error.instance == -2 else _retry_reason(error))
    return Problem(path, _sentence(error))


def _retry_reason(error: ValidationError) -> str:
    return _ENDLESS if error.instance == -1 else f"is {error.instance}, and retries are counted from 0"


def _sentence(error: ValidationError) -> str:
    """The library's sentence, without values: they may be long, and they may be secret."""
    match error.validator:
        case "type":
            return f"is not of type {' or '.join(_listed(error.validator_value))}"
        case "minItems" | "minProperties":
            return "is empty"
        case "not":
            return "is 0: give -1 or at least 1"
        case "maxLength":
            return f"is longer than {error.validator_value} characters"
        case _:
            return error.message[:_LONGEST]


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [str(value)]
