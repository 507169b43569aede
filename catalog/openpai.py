# SPDX-License-Identifier: Apache-2.0
"""The rules of OpenPAI's runtime, in which a task's command runs: rows of openpai_runtime.toml and openpai_exits.toml.

`check` reports what a cluster would refuse, the plan avoids it, and the local cluster behaves by these rules. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from catalog.tables import table

# The runtime's exit code for a failure without a row.
UNKNOWN_FAILURE = 255


class UnreadableError(ValueError):
    """The runtime cannot read a plugin's parameters: the task fails before it begins."""


def _runtime_rule(name: str) -> Mapping[str, Any]:
    rule: Mapping[str, Any] = table("openpai_runtime")[name]
    return rule


def init_failure(rule: str) -> int:
    """The exit code of a task that does not begin because of this rule."""
    return int(_runtime_rule(rule)["code"])


def local_grace_seconds() -> float:
    """The seconds that a task of the local cluster may continue after it was told to stop."""
    return float(_runtime_rule("stop")["local_grace_seconds"])


def image_checker_problem(uri: str) -> str:
    """Why the image checker refuses a reference, so that no task of the job begins. Empty if it does not."""
    rule = _runtime_rule("image")
    bare = uri.partition("/")[2] if _has_host(uri) else uri
    repository, *rest = bare.split(":")
    if "@" in repository or "@" in "".join(rest[:1]):
        return "it takes no digests"
    if not re.fullmatch(rule["repository"], repository):
        return f"in `{repository}` it takes lowercase letters, digits and `-_./` only"
    if rest and not re.fullmatch(rule["tag"], rest[0]):
        return f"in the tag `{rest[0]}` it takes lowercase letters, digits and `-_.` only"
    return ""


def registry_of(uri: str) -> str:
    """The address with which the runtime and the cluster find the password of an image."""
    rule, host = _runtime_rule("registry"), uri.partition("/")[0]
    return host if _has_host(uri) and host not in rule["hosts"] else str(rule["address"])


def same_registry(registry: str) -> str:
    """One spelling for each registry that a job names."""
    rule = _runtime_rule("registry")
    return str(rule["address"]) if registry in rule["hosts"] else registry


def ignores_password(uri: str, registry: str) -> bool:
    """Whether the image checker calls the registry anonymously, although there is a password."""
    bare = registry.strip().rstrip("/")
    url = bare if bare.startswith("http") else f"https://{bare}"
    rest, _, version = url.rpartition("/")
    called = f"{(rest if version in ('v1', 'v2') else url).rstrip('/')}/v2/"
    return not _has_host(uri) and called != _runtime_rule("registry")["default"]


def checker_problem(job: Mapping[str, Any], role: str) -> str:
    """Why the image checker ends the tasks of a role before they begin. Empty if it does not.

    It looks for the image among all prerequisites of that name, and reads `auth` only in a job with secrets."""
    image = job["taskRoles"][role]["dockerImage"]
    named = [row for row in job.get("prerequisites", ()) if row["name"] == image]
    if len(named) != 1:
        return f"{len(named)} prerequisites have the name `{image}`, of whatever type, and it takes one"
    uri, auth = str(named[0]["uri"]), named[0].get("auth")
    if problem := image_checker_problem(uri):
        return f"of `{uri[:120]}`: {problem}"
    if not (job.get("secrets") and isinstance(auth, Mapping) and auth.get("username") and auth.get("password")):
        return ""
    if "registryuri" not in auth:
        return "`auth` has no `registryuri`"
    if ignores_password(uri, str(auth["registryuri"])):
        return f"it calls Docker Hub without the password, because it does not know `{auth['registryuri']}`"
    return ""


def _has_host(uri: str) -> bool:
    first, slash, _ = uri.partition("/")
    return bool(slash) and ("." in first or ":" in first)


def changed_in_password(password: str) -> str:
    """The characters that the image checker reads as others, or the whole password if it cannot read it."""
    rule = _runtime_rule("password")
    return password if password in rule["unreadable"] else "".join(sorted(set(password) & set(rule["escaped"])))


def parameters_as_read(shown: str) -> Any:
    """A plugin's parameters as the runtime reads them. `shown`: as Python shows them, with references filled in."""
    import yaml

    try:
        return yaml.safe_load(shown)
    except yaml.YAMLError as error:
        raise UnreadableError(str(error).splitlines()[0]) from None


# A reference such as `<% $data.uri[0] %>`, which the runtime replaces by its value.
_REFERENCE = re.compile(r"<%\s*\$")


def has_runtime_reference(command: str) -> bool:
    return _REFERENCE.search(command) is not None


def reads_unchanged(value: Any) -> bool:
    """Whether the runtime reads a part of a plugin's parameters unchanged."""
    try:
        return bool(parameters_as_read(str([value])) == [value])
    except UnreadableError:
        return False


def reported_exit_code(code: int, output: bytes) -> int:
    """The exit code that the runtime reports. `code`: the command's own exit code. `output`: its last output."""
    if code == 0:
        return 0
    output = output.lower()
    return next((pattern.code for pattern in _exit_patterns() if pattern.matches(code, output)), UNKNOWN_FAILURE)


@dataclass(frozen=True)
class _Pattern:
    """`parts`: texts that one line of the output contains, in this order."""

    code: int
    ended_with: int | None
    parts: tuple[re.Pattern[bytes], ...]

    def matches(self, code: int, output: bytes) -> bool:
        return self.ended_with in (None, code) and (not self.parts or self._is_in(output))

    def _is_in(self, output: bytes) -> bool:
        """Whether a line of the output matches. It reads the text only once, because any program may print very long
        lines."""
        begin = 0
        while first := self.parts[0].search(output, begin):
            end = output.find(b"\n", first.end())
            begin = len(output) if end < 0 else end
            after: re.Match[bytes] | None = first
            for part in self.parts[1:]:
                after = part.search(output, after.end(), begin) if after else None
            if after:
                return True
        return False


@cache
def _exit_patterns() -> tuple[_Pattern, ...]:
    """All patterns, in the order in which the runtime compares them."""
    patterns = []
    for row in table("openpai_exits")["exit"]:
        for when in row.get("when", ()):
            parts = tuple(re.compile(part.encode()) for part in when.get("says", "").split(".*") if part)
            patterns.append(_Pattern(row["code"], when.get("code"), parts))
    return tuple(patterns)
