# SPDX-License-Identifier: Apache-2.0
"""Checks of how a task starts: by the launcher, which needs a newer Python, or without it, which does less."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.tables import table
from components.openpai.checks.registry import rule
from components.openpai.stack import OpenPaiJob, OpenPaiStack
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts
from schemas.model import STALL_MINUTES
from schemas.names import listing


def _plain(stack: OpenPaiStack) -> Iterator[tuple[str, OpenPaiJob]]:
    return ((name, job) for name, job in stack.jobs.items() if job.start == "plain")


@rule("TY890", "an image whose Python is too old for the launcher")
def old_python(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        row = next((row for row in table("openpai")["old_python"] if job.image.startswith(row["image"])), None)
        if row is not None and job.start == "launcher":
            message = f"this image has Python {row['python']}; the launcher needs 3.9, and the image has no launcher"
            yield Wrong(
                at("jobs", name, "image"), message, "add `start: plain`, or build an image: `trainyard image build`"
            )


@rule("TY891", "a framework that a plain command cannot start")
def plain_framework(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    able = table("openpai")["plain"]
    for name, job in _plain(stack):
        if job.framework not in able:
            message = f"{job.framework} needs processes beside the program, and the launcher starts them"
            remedy = f"remove `start: plain`, and use an image with the launcher; plain commands start {listing(able)}"
            yield Wrong(at("jobs", name, "start"), message, remedy)


@rule("TY892", "results in a bucket without the launcher")
def plain_bucket(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, _job in _plain(stack):
        if stack.storage is None and stack.bucket.existing is not None:
            message = "the launcher moves files to and from a bucket, and a plain command does not"
            yield Wrong(at("jobs", name, "start"), message, "use `trainyard:storage`, or an image with the launcher")


@rule("TY912", "port labels of a role that trainyard names itself")
def own_labels(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for role, spec in {}.items() if job.start == "as-is" else job.roles.items():
            if spec.ports:
                message = f"with `start: {job.start}` the framework's own ports are reserved, and no others"
                remedy = "remove it, or add `start: as-is`: then programs read OpenPAI's variables themselves"
                yield Wrong(at("jobs", name, "roles", role, "ports"), message, remedy)


@rule("TY913", "an option that a command as it is does not know", severity="warning")
def options_as_is(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.start == "as-is" and job.options:
            message = "with `start: as-is` nothing starts but the command: options have no effect"
            remedy = "remove them, and write what they say into `command`"
            yield Wrong(at("jobs", name, "options"), message, remedy)


@rule("TY893", "what only the launcher does", severity="warning")
def launchers_work(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.start == "launcher":
            continue
        if job.keep:
            message = "a plain command keeps only what the program writes below TRAINYARD_OUTPUT"
            yield Wrong(at("jobs", name, "keep"), message, "write these files there, or use an image with the launcher")
        if job.start == "plain" and job.stall_minutes not in (0, STALL_MINUTES):
            message = "nothing but the launcher sees that all nodes do nothing"
            remedy = "remove it, and use `maximumRuntimeMinutes`, or use an image with the launcher"
            yield Wrong(at("jobs", name, "stallMinutes"), message, remedy)
