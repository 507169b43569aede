# SPDX-License-Identifier: Apache-2.0
"""Checks of names: two names for one thing, one name for two things, unknown references, tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from catalog.reason_tags import REASON_TAGS
from schemas import each
from schemas.convert import camel_case
from schemas.each import keys_of
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at, rule
from schemas.model import Job, Role, Run, Stack
from schemas.name_suggestions import REFERENCES, reference_names_in, suggest_name

# Keys that describe a new thing, in parts of the file that also take `existing`.
_KEYS_OF_NEW = ("name", "repository", "key")
# Tags that trainyard itself sets on resources and runs.
OUR_TAGS = (
    "stack",
    "team",
    "environment",
    "managed-by",
    "job",
    "run",
    "trainyard-run",
    "trainyard-node",
    "trainyard-run-released",
)


@rule("TY605", "a new resource and an existing one are both named")
def name_and_existing(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for column in fields(stack):
        part = getattr(stack, column.name)
        if not isinstance(getattr(part, "existing", None), str):
            continue
        for key in _KEYS_OF_NEW:
            if getattr(part, key, None):
                message = f"`{key}` describes a new one, but `existing` names one that you already have"
                yield Wrong(at(camel_case(column.name), key), message, f"keep `{key}` or `existing`")


@rule("TY606", "two runs get the same name")
def same_name(stack: Stack, _: Facts) -> Iterator[Wrong]:
    taken: dict[str, str] = {}
    for job, spec in stack.jobs.items():
        for run, entry in spec.runs.items():
            for key in keys_of(run, entry):
                name = f"{stack.team}-{stack.environment}-{job}-{key}"
                if name in taken and taken[name] != job:
                    message = f"the run is called `{name}`, like a run of the job `{taken[name]}`"
                    yield Wrong(at("jobs", job, "runs", run), message, "rename the job or the run")
                taken[name] = job


@rule("TY612", "a tag that trainyard sets itself")
def own_tag(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for key in stack.tags:
        if key in OUR_TAGS:
            yield Wrong(at("tags", key), f"trainyard sets the tag `{key}` itself", "use another key")
        if key in REASON_TAGS:
            message = f"`{key}` is a reason that policies believe, and trainyard sets it where the stack has one"
            remedy = "use another key; to break a rule on purpose, name it under `waivers`, with a reason and an end"
            yield Wrong(at("tags", key), message, remedy)


@rule("TY613", "an unknown reference")
def unknown_reference(stack: Stack, _: Facts) -> Iterator[Wrong]:
    references = [*REFERENCES, *stack.references()]
    # Only the arguments and variables of a run can use the values of its `each`.
    for path, text in _texts_with_references(stack):
        job, *place = path[2:]
        run = stack.jobs[str(job)].runs[str(place[1])] if place[0] == "runs" else None
        names = [f"{each.REFERENCE}{name}" for name in run.each] if run else []
        for name in dict.fromkeys(each.each_names_in(text)):
            if f"{each.REFERENCE}{name}" not in names:
                remedy = suggest_name(f"{each.REFERENCE}{name}", names) if names else "add it to `each` of the run"
                if run is None:
                    remedy = "use it in `args` or `env` of a run with `each`"
                yield Wrong(path, f"`${{{each.REFERENCE}{name}}}` is not a value of `each`", remedy)
    for path, text in _texts_with_references(stack):
        spec = stack.jobs[str(path[2])]
        if path[-1] == "command" and (spec.by_shell or spec.speaks):
            # A shell reads it as a variable.
            continue
        for name in dict.fromkeys(reference_names_in(each.without_each_references(text))):
            if name not in references:
                remedy = suggest_name(name, references)
                if name.isupper():
                    remedy = f"variables of the node are not filled in: read ${name} in the script"
                yield Wrong(path, f"`${{{name}}}` is not a known reference", remedy)


def _texts_with_references(stack: Stack) -> Iterator[tuple[Path, str]]:
    for name, job in stack.jobs.items():
        here = at("jobs", name)
        yield (*here, "image"), job.image
        yield (*here, "command"), job.command
        for key, value in job.env.items():
            yield (*here, "env", key), value if isinstance(value, str) else ""
        for role, part in job.roles.items():
            yield (*here, "roles", role, "command"), part.command or ""
            for key, value in part.env.items():
                yield (*here, "roles", role, "env", key), value if isinstance(value, str) else ""
        for run, entry in job.runs.items():
            for index, word in enumerate(entry.args):
                yield (*here, "runs", run, "args", index), word
            for key, value in entry.env.items():
                yield (*here, "runs", run, "env", key), value if isinstance(value, str) else ""


def _renameable_items(stack: Stack) -> Iterator[tuple[str, Path, Mapping[str, Job | Run | Role]]]:
    """Everything that can be renamed: the jobs, and the runs and roles of each."""
    yield "job", at("jobs"), stack.jobs
    for name, job in stack.jobs.items():
        yield "run", at("jobs", name, "runs"), job.runs
        yield "role", at("jobs", name, "roles"), job.roles


@rule("TY830", "a former name that is still in use")
def still_there(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for kind, path, items in _renameable_items(stack):
        for name, item in items.items():
            for former in item.was.names:
                if former == name:
                    message = f"`{name}` is its present name, not a former one"
                    yield Wrong((*path, name, "was"), message, f"write the {kind}'s former name, or remove it")
                elif former in items:
                    message = f"another {kind} is called `{former}`: both would use the same records and bucket folder"
                    remedy = f"give the {kind} `{former}` another name, or remove `was` to start `{name}` afresh"
                    yield Wrong((*path, name, "was"), message, remedy)


@rule("TY831", "one former name is given twice")
def claimed_twice(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for kind, path, items in _renameable_items(stack):
        claims: dict[str, str] = {}
        for name, item in items.items():
            for former in item.was.names:
                first = claims.setdefault(former, name)
                if first != name:
                    message = f"the {kind} `{first}` was called `{former}` too: only one can continue its records"
                    yield Wrong((*path, name, "was"), message, "keep `was` where the records belong")
