# SPDX-License-Identifier: Apache-2.0
"""Checks of stacks that `trainyard convert` makes: what is still to be filled in, and scripts of other systems."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.tables import table
from schemas.convert import camel_case, unstructure_model
from schemas.facts import Facts
from schemas.findings import Wrong, at, rule
from schemas.job_on_platform import JobOnPlatform
from schemas.model import Stack
from schemas.name_suggestions import suggest_name
from schemas.unfilled_values import PLACEHOLDER, UNFILLED, placeholder_paths

# Fields of the model that are no keys of the file, or other keys.
_OWN_KEYS = frozenset({"name", "folder", "platform"})


@rule(UNFILLED, "a placeholder that nobody has replaced", severity="warning")
def unfilled_placeholder(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key, value in unstructure_model(stack).items():
        if key not in _OWN_KEYS:
            for path in placeholder_paths(value, at(camel_case(key))):
                message = f"`{PLACEHOLDER}` stands where only you know the value: `up` refuses it"
                yield Wrong(path, message, "write the value")


@rule("TY8003", "a script of a system that is not known")
def unknown_system(stack: Stack, _: Facts) -> Iterator[Wrong]:
    known = table("bring/systems")
    for name, job in stack.jobs.items():
        for index, system in enumerate(job.speaks):
            if system not in known:
                message = f"no script can speak `{system}` here"
                yield Wrong(at("jobs", name, "speaks", index), message, suggest_name(system, known))


@rule("TY4002", "a script of another system that the framework would start several times")
def system_in_framework(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        if not job.speaks:
            continue
        options = JobOnPlatform.of(stack, job, framework).options
        wraps = any(wrap.when is None or options.get(wrap.when) for wrap in framework.wraps)
        starts = any(framework.roles[role].start for role in job.roles if role in framework.roles)
        if options.get(framework.processes or "", 1) != 1:
            message = "the script starts its processes itself, and `processes` would start the script as often"
            yield Wrong(at("jobs", name, "options", "processes"), message, "remove `processes`")
        elif wraps or starts:
            message = f"the script starts its processes itself, and so does {framework.name}"
            yield Wrong(at("jobs", name, "framework"), message, "use `framework: pytorch`, without its options")
