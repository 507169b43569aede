# SPDX-License-Identifier: Apache-2.0
"""Checks of environment variables: reserved names, and secrets in plain text. Values are never printed."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.frameworks import Framework
from catalog.secret_looks import SECRET_NAME, gives_secret, holds_secret, looks_secret, names_secret
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at, rule
from schemas.model import EnvValue, Stack

# Name or prefix -> why it is reserved, on every platform. A prefix ends with an underscore.
OWNED = {
    "TRAINYARD_": "trainyard's launcher reads it",
    "NODE_RANK": "it identifies the node",
    "RANK": "it says which process this is",
    "LOCAL_RANK": "it says which process this is",
    "WORLD_SIZE": "the number of processes follows from the roles",
    "MASTER_ADDR": "the launcher finds the main node's address",
    "MASTER_PORT": "it follows from `ports`",
    "TF_CONFIG": "the launcher writes it from the roles",
}


def _env_variables(stack: Stack) -> Iterator[tuple[Path, str, EnvValue, str]]:
    """The path of each variable, its name and value, and its job."""
    for job, spec in stack.jobs.items():
        for name, value in spec.env.items():
            yield at("jobs", job, "env", name), name, value, job
        for role, part in spec.roles.items():
            for name, value in part.env.items():
                yield at("jobs", job, "roles", role, "env", name), name, value, job
        for run, entry in spec.runs.items():
            for name, value in entry.env.items():
                yield at("jobs", job, "runs", run, "env", name), name, value, job


def reserved_reason(stack: Stack, name: str) -> str | None:
    """The reason why a variable is reserved. None if it is free."""
    upper, owned = name.upper(), {**OWNED, **stack.variables}
    if upper in owned:
        return owned[upper]
    return next((why for prefix, why in owned.items() if prefix.endswith("_") and upper.startswith(prefix)), None)


def variables_set_by(framework: Framework) -> set[str]:
    of_ads = framework.ads.environment if framework.ads else {}
    return {*framework.reserved, *framework.environment, *of_ads}


@rule("TY501", "a reserved environment variable")
def reserved_variable(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for path, name, _, job in _env_variables(stack):
        framework = facts.framework(stack.jobs[job])
        why = reserved_reason(stack, name)
        if why is None and framework is not None and name in variables_set_by(framework):
            why = f"{framework.name}'s launcher sets it"
        if why is not None:
            yield Wrong(path, f"`{name}` is reserved: {why}", "remove it, or use a name of your own")


@rule("TY502", "a secret in plain text, by its name")
def secret_name(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for path, name, value, _job in _env_variables(stack):
        if isinstance(value, str) and "${" not in value and names_secret(name, value):
            yield Wrong(
                path, f"`{name}` looks like a secret, and its value is in plain text", _make_secret(stack, path)
            )


@rule("TY503", "a secret in plain text, by its value")
def secret_value(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for path, name, value, _job in _env_variables(stack):
        if isinstance(value, str) and not SECRET_NAME.search(name) and looks_secret(value):
            yield Wrong(
                path, f"the value of `{name}` looks like a secret, and it is in plain text", _make_secret(stack, path)
            )


@rule("TY504", "a secret in a command, an address or a tag")
def secret_elsewhere(stack: Stack, _: Facts) -> Iterator[Wrong]:
    remedy = "keep it as a `secure:` environment variable, or in `trainyard:vault`"
    for path, words in _texts_to_search(stack):
        for word, following in zip(words, [*words[1:], ""], strict=False):
            if gives_secret(word, following) or holds_secret(word):
                yield Wrong(path, "holds what looks like a secret in plain text", remedy)
                break


def _texts_to_search(stack: Stack) -> Iterator[tuple[Path, list[str]]]:
    for name, job in stack.jobs.items():
        yield at("jobs", name, "command"), job.command.split()
        for role, part in job.roles.items():
            yield at("jobs", name, "roles", role, "command"), (part.command or "").split()
        for run, entry in job.runs.items():
            yield at("jobs", name, "runs", run, "args"), list(entry.args)
            for key, values in entry.each.items():
                yield at("jobs", name, "runs", run, "each", key), [value for value in values if isinstance(value, str)]
        if job.code and job.code.git:
            yield at("jobs", name, "code", "git", "url"), [job.code.git.url]
    for key, value in stack.tags.items():
        yield at("tags", key), [value]


def _make_secret(stack: Stack, path: Path) -> str:
    key = ".".join(str(part) for part in path[1:])
    command = f"trainyard secret set {stack.name} '{key}'"
    return f"`{command}`; for a stack that is only on the local cloud: `{command} --local`"
