# SPDX-License-Identifier: Apache-2.0
"""Refuses values outside of their limits, and unknown filters. The limits are in botocore's models, which botocore does
not enforce: lengths, patterns and enumerations. A few more are rows of the catalog."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import AwsPrincipal
from localcloud.aws.access.needs import parameter_texts
from localcloud.aws.access.policies import role_named
from localcloud.aws.additions.log_filters import read_pattern
from localcloud.aws.aws_errors import Reason, RefusalError, aws_refusal
from localcloud.aws.border.requests import model_of, service_model
from localcloud.aws.calls import AwsCall
from localcloud.aws.services import Wire

_HOUR = 3600
# botocore's documentation marks the names of filters as code. Some values of filters also match, which does no harm.
_MARKED_AS_CODE = re.compile(r"<code>([^<]+)</code>")
_FILTER_NAME = re.compile(r"Filter\.\d+\.Name")


def refuse_values_outside_limits(call: AwsCall, caller: AwsPrincipal) -> None:
    """Refuses a call with values outside of their limits. The message lists all of them."""
    code = table("aws_refusals")["limits"].get(call.service.prefix)
    problems = [*_problems_by_model(call)] if code else []
    for row in table("aws_refusals")["values"] if code else ():
        value = call.parameters.get(row["parameter"])
        if row["operation"] == call.name and value is not None and value not in row["values"]:
            problems.append(
                f"Value '{value}' at '{row['parameter']}' failed to satisfy constraint: Member must satisfy enum"
                f" value set: [{', '.join(map(str, row['values']))}]"
            )
    if problems:
        plural = "" if len(problems) == 1 else "s"
        raise aws_refusal("limits", code=code, count=len(problems), plural=plural, problems="; ".join(problems))
    if call.name == "logs.FilterLogEvents":
        read_pattern(call.text("filterPattern"))
    if call.name == "sts.AssumeRole":
        # A session may not be longer than its role allows. A session of a role may assume roles for one hour at most.
        text, role = call.text("DurationSeconds"), role_named(call.text("RoleArn").rpartition("/")[2])
        if not text.isdecimal() or role is None:
            return
        if int(text) > int(role.max_session_duration or _HOUR):
            raise aws_refusal("session too long")
        if caller.role and int(text) > _HOUR:
            raise aws_refusal("session of session")


def refuse_texts(call: AwsCall) -> None:
    """Refuses texts that the rows `text` do not allow."""
    for row in table("aws_refusals")["text"]:
        for value in parameter_texts(call, row["parameter"]) if fnmatchcase(call.name, row["operations"]) else ():
            if value and not re.fullmatch(row["allowed"], value, re.DOTALL):
                raise RefusalError(Reason.REFUSED, row["message"].format(value=value), row["code"])


def _problems_by_model(call: AwsCall) -> Iterator[str]:
    shape = model_of(call).input_shape
    for name, member in (shape.members if shape is not None else {}).items():
        if name in call.parameters:
            yield from _find_model_problems(call.parameters[name], member, _first_small(name), call.service.wire)


def _find_model_problems(value: Any, shape: Any, path: str, wire: Wire) -> Iterator[str]:
    """The violated constraints of a value, in AWS's words. In a query, only texts and numbers are checked."""
    kind = shape.type_name
    if kind in ("integer", "long") and wire is Wire.QUERY and str(value).isdecimal():
        value = int(value)
    if kind == "structure" and isinstance(value, Mapping):
        for name, member in shape.members.items():
            if name in value:
                yield from _find_model_problems(value[name], member, f"{path}.{_first_small(name)}", wire)
    elif kind == "list" and isinstance(value, list):
        yield from _size_problems(len(value), shape, path, value, "have length")
        for number, item in enumerate(value, 1):
            yield from _find_model_problems(item, shape.member, f"{path}.{number}.member", wire)
    elif kind == "string" and isinstance(value, str):
        yield from _size_problems(len(value), shape, path, value, "have length")
        pattern = shape.metadata.get("pattern")
        if pattern and (compiled := _compile_pattern(pattern)) is not None and not compiled.fullmatch(value):
            yield _describe_problem(value, shape, path, f"Member must satisfy regular expression pattern: {pattern}")
        if shape.enum and value not in shape.enum:
            yield _describe_problem(
                value, shape, path, f"Member must satisfy enum value set: [{', '.join(shape.enum)}]"
            )
    elif kind in ("integer", "long") and isinstance(value, int):
        yield from _size_problems(value, shape, path, value, "have value")


def _size_problems(size: int, shape: Any, path: str, value: Any, what: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and size < least:
        yield _describe_problem(value, shape, path, f"Member must {what} greater than or equal to {least}")
    if most is not None and size > most:
        yield _describe_problem(value, shape, path, f"Member must {what} less than or equal to {most}")


def _describe_problem(value: Any, shape: Any, path: str, constraint: str) -> str:
    text = "***" if shape.metadata.get("sensitive") else str(value)[:200]
    return f"Value '{text}' at '{path}' failed to satisfy constraint: {constraint}"


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """The compiled pattern. None if Python does not support it, for example because of Unicode classes."""
    try:
        return re.compile(pattern, re.ASCII)
    except re.error:
        return None


def _first_small(name: str) -> str:
    return name[:1].lower() + name[1:]


def refuse_filters(call: AwsCall) -> None:
    """Refuses a filter that EC2 does not have. moto refuses filters of EC2 that it does not support."""
    given = [str(value) for name, value in call.parameters.items() if _FILTER_NAME.fullmatch(name)]
    documented = _filter_names(call.operation) if given else frozenset()
    for name in given:
        # Some operations accept filters by tags without documenting them.
        if documented and name not in documented and not name.startswith("tag"):
            raise aws_refusal("filter", name=name)


@cache
def _filter_names(operation: str) -> frozenset[str]:
    """The names of an operation's filters, from the documentation in botocore's model. If it lists none, every filter
    is accepted."""
    shape = service_model("ec2").operation_model(operation).input_shape
    members = shape.members if shape is not None else {}
    text = next((members[name].documentation for name in ("Filters", "Filter") if name in members), "")
    return frozenset(html.unescape(name) for name in _MARKED_AS_CODE.findall(text))
