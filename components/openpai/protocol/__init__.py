# SPDX-License-Identifier: Apache-2.0
"""OpenPAI's job protocol, version 2: its text, its rules, and how a cluster fills in a job's commands.

A job is validated by the protocol's schema first, then by rules that no schema can express. `check` and the provider
reject a job with `problems`. A cluster's REST server rejects less: its rules are in `refusals`, which the local cluster
also uses. `obstacles` are the reasons why an accepted job cannot run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.openpai.protocol.commands import TemplateError, runtime_text, task_command, with_secrets
from components.openpai.protocol.rules import (
    ADVICE,
    OBSTACLES,
    POD_REFUSED,
    REFUSED,
    Problem,
    Rules,
    controller_name,
    named_storages,
    retry_reason,
)
from components.openpai.protocol.text import (
    LONGEST_TEXT,
    Moment,
    NotAJobError,
    NotYamlError,
    javascript_text,
    mask_job_secrets,
    parse_job_text,
    shares_secrets,
    text_of,
)

if TYPE_CHECKING:  # only for types: the library is slow to import, and most programs check no job
    from jsonschema.exceptions import ValidationError

__all__ = [
    "LONGEST_TEXT",
    "NotAJobError",
    "NotYamlError",
    "Problem",
    "TemplateError",
    "controller_name",
    "javascript_text",
    "mask_job_secrets",
    "named_storages",
    "parse_job_text",
    "protocol_obstacles",
    "protocol_problems",
    "protocol_refusals",
    "runtime_text",
    "shares_secrets",
    "task_command",
    "text_of",
    "with_secrets",
]

_FOLDER = Path(__file__).parent
# Values of a job may be secrets, so messages show only this many characters of one.
_LONGEST = 200
# Keywords of a schema whose error messages contain the value.
_OF_VALUES = ("type", "anyOf", "not")


def protocol_problems(job: Mapping[str, Any]) -> list[Problem]:
    """All problems of a job, for those who submit it. The rules are checked only if the schema holds."""
    return protocol_refusals(job) or _schema_problems("runnable.json", job) or _broken_rules((*OBSTACLES, *ADVICE), job)


def protocol_refusals(job: Mapping[str, Any]) -> list[Problem]:
    """Why a cluster's REST server refuses a job."""
    return _schema_problems("schema.json", job) or _broken_rules(REFUSED, job)


def protocol_obstacles(job: Mapping[str, Any]) -> list[Problem]:
    """Why a job that the REST server accepts cannot run."""
    shape = _schema_problems("runnable.json", job)
    return [each._replace(code=each.code or POD_REFUSED) for each in shape] or _broken_rules(OBSTACLES, job)


def _schema_problems(schema: str, job: Mapping[str, Any]) -> list[Problem]:
    return [_problem_of_error(error) for error in _schema_validator(schema).iter_errors(dict(job))]


def _broken_rules(rules: Rules, job: Mapping[str, Any]) -> list[Problem]:
    return [problem for rule in rules for problem in rule(job)]


@cache
def _schema_validator(schema: str) -> Any:
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import Draft202012Validator, extend

    def is_text(_: Any, value: Any) -> bool:
        return isinstance(value, str) and not isinstance(value, Moment)

    def matches_pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
        # Here `$` is the end of the text only. In Python, it also matches before a last line break.
        if validator.is_type(instance, "string") and not re.search(pattern.replace("$", r"\Z"), instance):
            yield ValidationError(f"{instance[:60]!r} does not match {pattern}")

    texts = Draft202012Validator.TYPE_CHECKER.redefine("string", is_text)
    checks = {"pattern": matches_pattern}
    validator: Any = extend(Draft202012Validator, checks, type_checker=texts)  # type: ignore[no-untyped-call]
    return validator(json.loads((_FOLDER / schema).read_text(encoding="utf-8")))


def _problem_of_error(error: ValidationError) -> Problem:
    """The library's message, without values that may be long or secret."""
    path, rule = tuple(error.absolute_path), error.schema if isinstance(error.schema, Mapping) else {}
    if path[-1:] in (("jobRetryCount",), ("taskRetryCount",)) and error.validator == "minimum":
        return Problem(path, retry_reason(int(str(error.instance))))
    expected: Any = error.validator_value
    match error.validator:
        case "type":
            sentence = f"is not of type {' or '.join(expected if isinstance(expected, list) else [str(expected)])}"
        case "minItems" | "minProperties":
            sentence = "is empty"
        case "not":
            sentence = "is null"
        case "anyOf":
            sentence = "has no value that OpenPAI can read"
        case "maxLength":
            sentence = f"is longer than {expected} characters"
        case _:
            sentence = error.message[:_LONGEST]
    unhandled = bool(rule.get("unhandled")) and error.validator in _OF_VALUES
    return Problem(path, sentence, unhandled=unhandled, code=rule.get("code", 0))
