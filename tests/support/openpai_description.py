# SPDX-License-Identifier: Apache-2.0
"""Compares responses with the published description of OpenPAI's REST API, which its JavaScript client contains.

It is read from the client that npm installs: this repository has no copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
from jsonschema.validators import Draft4Validator

from tests.support.client_environment import environment

LOCK = Path(__file__).parents[1] / "clients" / "javascript" / "requirements.txt"
_FILE = "node_modules/@microsoft/openpai-js-sdk/lib/src/api/v2/swagger.yaml"
# Error codes of the server that the description does not have, and where OpenPAI's code has them.
FORGOTTEN = {"InvalidProtocolError": "the middleware that reads a job before it is submitted"}
_TASK = "/api/v2/jobs/{user}~{job}/attempts/{jobAttemptId}/taskRoles/{taskRoleName}/taskIndex/{taskIndex}/attempts"
# Error codes of OpenPAI's code (v1.8.0) that differ from the description, by operation and status. None: no code.
BY_SOURCE: Mapping[tuple[str, int], str | None] = {
    # For a text that is not YAML, the middleware raises an error, and config/express.js makes the response.
    ("POST /api/v2/jobs", 500): None,
    # controllers/v2/user.js
    ("GET /api/v2/users/{user}", 400): "NoUserError",
    # models/v2/task.js
    (f"GET {_TASK}", 404): "NoJobError",
}
# Properties whose type a later version of the description corrects: in 2.2.6, the task's id is a string.
CORRECTED = {"taskUid": {"type": "string"}}
# Errors that every operation with a token may return, whether the description lists them there or not.
FOR_ALL = {401: {"UnauthorizedUserError"}}


@dataclass(frozen=True)
class DescribedOperation:
    method: str
    template: str
    responses: Mapping[str, Any]
    asks_for_a_token: bool

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"


@dataclass(frozen=True)
class Description:
    """`document`: the description, with its schemas translated into JSON Schema."""

    document: Mapping[str, Any]

    @cached_property
    def operations(self) -> Sequence[DescribedOperation]:
        return tuple(self._operations())

    def _operations(self) -> Iterator[DescribedOperation]:
        for template, methods in self.document["paths"].items():
            for method, one in methods.items():
                if method != "parameters":
                    yield DescribedOperation(method.upper(), template, one["responses"], bool(one.get("security")))

    def operation(self, method: str, path: str) -> DescribedOperation:
        """The operation of a request. A path without variables takes precedence over one with variables."""
        fitting = [one for one in self.operations if one.method == method and _pattern(one.template).fullmatch(path)]
        if not fitting:
            raise KeyError(f"{method} {path}")
        return min(fitting, key=lambda one: one.template.count("{"))

    def problems(self, method: str, path: str, status: int, kind: str, body: Any) -> list[str]:
        """The differences between a response and the description."""
        operation = self.operation(method, path)
        response = self._resolved(operation.responses.get(str(status)))
        if status >= 400:
            return [*self._error_problems(operation, status, response, body)]
        if response is None:
            return [f"{operation.name}: the description has no status {status}"]
        described = response.get("content") or {}
        if not described:
            return []
        if kind.partition(";")[0] not in described:
            return [f"{operation.name}: {kind}, and not {' or '.join(described)}"]
        return self._shape_problems(described[kind.partition(";")[0]].get("schema") or {}, body)

    def _error_problems(self, operation: DescribedOperation, status: int, response: Any, body: Any) -> Iterator[str]:
        code = body.get("code") if isinstance(body, Mapping) else None
        if not isinstance(body, Mapping) or not isinstance(body.get("message"), str):
            yield f"{operation.name}: {status} without a message: {body!r}"
        elif (
            code == BY_SOURCE.get((operation.name, status), "")
            or code in FORGOTTEN
            or code in self._unclaimed
            or (operation.asks_for_a_token and code in FOR_ALL.get(status, ()))
        ):
            return
        elif response is None:
            yield f"{operation.name}: the description has no status {status} ({code})"
        elif code not in (named := self._codes(response)):
            yield f"{operation.name}: {status} {code}, and not {' or '.join(sorted(named))}"

    @cached_property
    def _unclaimed(self) -> set[str]:
        """Codes that the description defines and lists for no operation, such as the one for a full cluster."""
        components = self.document["components"]
        named = {code for response in components["responses"].values() for code in self._codes(response)}
        return set(components["schemas"]["Response"]["properties"]["code"]["enum"]) - named

    def _codes(self, response: Mapping[str, Any]) -> set[str]:
        """The codes in a response's examples, or in its text."""
        content = response.get("content", {}).get("application/json", {})
        examples = [self._resolved(one) for one in content.get("examples", {}).values()]
        named = {one["value"]["code"] for one in examples if one and "value" in one}
        return named | set(re.findall(r"\w+Error\b", response.get("description", "")))

    def _shape_problems(self, schema: Mapping[str, Any], body: Any) -> list[str]:
        validator = Draft4Validator({**schema, "components": self.document["components"]})
        return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(body)]

    def _resolved(self, value: Any) -> Any:
        """The part of the document that a reference points to."""
        if not isinstance(value, Mapping) or "$ref" not in value:
            return value
        found: Any = self.document
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return self._resolved(found)


@cache
def description() -> Description:
    file = environment(LOCK).parent / _FILE
    return Description(_as_json_schema(yaml.safe_load(file.read_text("utf-8"))))


def _as_json_schema(value: Any) -> Any:
    """Translates a schema: OpenAPI 3.0 has `nullable`. Jobs refer to another document, and are not compared here: our
    own check of the protocol covers them."""
    if isinstance(value, list):
        return [_as_json_schema(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    if str(value.get("$ref", "")).startswith("http"):
        return {"type": "object"}
    plain = {key: _as_json_schema(CORRECTED.get(key, one)) for key, one in value.items()}
    if plain.get("nullable") is True and isinstance(plain.get("type"), str):
        plain["type"] = [plain["type"], "null"]
    return plain


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\})", template.rstrip("/"))
    return re.compile("".join(r"[^/~]+" if part.startswith("{") else re.escape(part) for part in parts) + "/?")
