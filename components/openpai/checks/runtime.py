# SPDX-License-Identifier: Apache-2.0
"""Checks of what OpenPAI's runtime would refuse or change in a task's pod, after the cluster has taken the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.openpai import changed_in_password, has_reference, ignores_password, image_problem, reads, registry_of
from components.openpai.checks.registry import rule
from components.openpai.stack import RUNS_COMMANDS, OpenPaiJob, OpenPaiStack
from schemas.checks.images import OURS, has_capitals, images_of
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts

_Place = tuple[str | int, ...]


def _images(stack: OpenPaiStack) -> Iterator[tuple[str, OpenPaiJob, str]]:
    """The image of each job. One that is malformed (TY304), or in a registry that is missing (TY873), says nothing."""
    for row in images_of(stack):
        uri = row.text.replace(OURS, stack.registry.existing or OURS)
        if "${" not in uri and not has_capitals(row):
            yield row.job, stack.jobs[row.job], uri


@rule("TY877", "an image that OpenPAI's checker refuses")
def image(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, _job, uri in _images(stack):
        if problem := image_problem(uri):
            message = f"before a task begins, OpenPAI looks for its image, and refuses `{uri[:120]}`: {problem}"
            remedy = "push the image under a tag of lowercase letters, digits and `-_.`, and name it by that"
            yield Wrong(at("jobs", name, "image"), message, remedy)


@rule("TY878", "a password that OpenPAI does not use for the image")
def other_registry(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job, uri in _images(stack):
        auth = job.image_auth
        if auth is not None and auth.registry is not None and ignores_password(uri, auth.registry):
            message = (
                f"`{uri[:120]}` names no registry, so OpenPAI asks for it at Docker Hub, and not with the password of "
                f"`{auth.registry}`"
            )
            remedy = f"remove `registry`, which then is {registry_of(uri)}, or write the image with its registry"
            yield Wrong(at("jobs", name, "imageAuth", "registry"), message, remedy)


@rule("TY879", "a password that OpenPAI changes", severity="warning")
def password(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        # Where only the file is read, its value is sealed.
        value = job.image_auth.password.value if job.image_auth else None
        if value and (changed := changed_in_password(value)):
            what = "cannot read a password that is only `=`" if value == changed else "reads & < > \" and ' as HTML's"
            message = f"OpenPAI's image checker {what}: it would ask with another password, and refuse the image"
            remedy = "give the registry's user a password, or an access token, of letters and digits"
            yield Wrong(at("jobs", name, "imageAuth", "password"), message, remedy)


@rule("TY899", "a text that OpenPAI's runtime does not read as it is")
def unreadable(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for path, value in _texts(job):
            if all(map(reads, _texts_in(value))):
                continue
            message = (
                "OpenPAI's runtime reads such a text as YAML between quotes that it chose: backslashes, line breaks "
                "and both kinds of quotes in one text do not arrive"
            )
            yield Wrong((*at("jobs", name), *path), message, "write it without them")
        for path, command in _commands(job):
            if reads(command) or not has_reference(command):
                continue
            message = (
                "a command with a reference arrives only without backslashes, line breaks and both kinds of quotes"
            )
            remedy = (
                "put the reference into a command of its own before it, as in `place=<% $data.uri[0] %>`, and use "
                "`$place`: commands of one list share a shell"
            )
            yield Wrong((*at("jobs", name), *path), message, remedy)


def _texts(job: OpenPaiJob) -> Iterator[tuple[_Place, Any]]:
    """What the runtime reads beside commands."""
    for index, one in enumerate(job.prerequisites):
        if one.before or one.after:
            yield from ((("prerequisites", index, "uri", number), uri) for number, uri in enumerate(one.uri))
    for index, plugin in enumerate(job.plugins):
        if plugin.plugin != RUNS_COMMANDS:
            yield from ((("plugins", index, "parameters", key), value) for key, value in plugin.parameters.items())


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for one in pair for text in _texts_in(one))
    elif isinstance(value, list | tuple):
        yield from (text for one in value for text in _texts_in(one))


def _commands(job: OpenPaiJob) -> Iterator[tuple[_Place, str]]:
    """The plan carries most of them in another form, in which all of them arrive."""
    for index, one in enumerate(job.prerequisites):
        for key, commands in (("before", one.before), ("after", one.after)):
            yield from ((("prerequisites", index, key, number), text) for number, text in enumerate(commands))
    for index, plugin in enumerate(job.plugins):
        if plugin.plugin == RUNS_COMMANDS:
            yield from _in_lists(("plugins", index, "parameters"), plugin.parameters)


def _in_lists(path: _Place, value: Any) -> Iterator[tuple[_Place, str]]:
    rows = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in rows:
        if isinstance(item, str):
            yield from [((*path, key), item)] if isinstance(value, list | tuple) else ()
        elif isinstance(item, Mapping | list | tuple):
            yield from _in_lists((*path, key), item)
