# SPDX-License-Identifier: Apache-2.0
"""Checks of the surroundings of jobs: the cluster, the place of results, and resources that OpenPAI cannot make.

They also find what the runtime would refuse or change in a task's pod after the cluster has accepted the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.openpai import (
    changed_in_password,
    has_runtime_reference,
    ignores_password,
    image_checker_problem,
    reads_unchanged,
    registry_of,
    same_registry,
)
from components.openpai.stack import RUNS_COMMANDS, OpenPaiJob, OpenPaiStack, rule
from schemas.checks.image_checks import OURS, has_capitals, images_of
from schemas.facts import Facts
from schemas.findings import Wrong, at

_Place = tuple[str | int, ...]


@rule("TY870", "a token that others on the network can read", severity="warning")
def plain_http(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    uri = stack.cluster.uri
    if uri.startswith("http://") and not uri.startswith(("http://127.", "http://localhost", "http://[::1]")):
        message = "over http://, everybody on the network path can read the token and the job's secrets"
        yield Wrong(at("cluster", "uri"), message, "use https://, with `certificate` if its authority is your own")


@rule("TY871", "results have no place")
def no_store(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    if stack.jobs and stack.storage is None and stack.bucket.existing is None:
        message = "a task's own files are deleted when it ends: checkpoints and results would be lost"
        remedy = (
            "add `trainyard:storage: { name: vision-nfs }` with the name of a storage of the cluster, or a bucket that "
            "speaks S3: `trainyard:bucket: { existing: … }`"
        )
        yield Wrong(at("jobs"), message, remedy)


@rule("TY872", "a bucket that tasks cannot use")
def bucket_of_own(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    own = stack.bucket
    if stack.storage is not None:
        return
    if own.existing is None and own.name is not None:
        message = "OpenPAI makes no buckets"
        yield Wrong(at("bucket", "name"), message, "name one that exists, under `existing`, or use `trainyard:storage`")
    if own.existing is None:
        return
    if own.access_key is None or own.secret_key is None:
        message = "tasks have no identity of their own, so they sign with keys"
        yield Wrong(at("bucket"), message, "add `accessKey` and `secretKey`, both as secrets")
    if own.region is None:
        yield Wrong(at("bucket"), "requests to the bucket are signed for a region", "add `region: us-east-1`, or yours")


@rule("TY873", "a registry, which OpenPAI does not make")
def missing_registry(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    if stack.registry.existing is not None:
        return
    for name, job in stack.jobs.items():
        if OURS in job.image:
            message = f"`{OURS}` is the stack's registry, but OpenPAI makes none"
            remedy = (
                "add `trainyard:registry: { existing: registry.example.com/vision/train }` with your registry's host"
            )
            yield Wrong(at("jobs", name, "image"), message, f"{remedy} and repository")


@rule("TY874", "another stack, which has nothing for this one")
def uses_other_stack(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None:
        message = "a stack on OpenPAI makes nothing that another one could take"
        yield Wrong(at("uses"), message, "remove it, and name cluster, storage and registry here")


@rule("TY875", "a storage in a folder that is in use")
def mount_in_use(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    own = stack.storage.mount if stack.storage else None
    taken = next((folder for folder in _TAKEN if own and f"{own}/".startswith(f"{folder}/")), None)
    if taken:
        yield Wrong(at("storage", "mount"), f"{taken} belongs to the system or to OpenPAI", "use a folder below /mnt")


@rule("TY876", "authorities that cannot be read")
def unreadable_authorities(stack: OpenPaiStack, facts: Facts) -> Iterator[Wrong]:
    named = stack.cluster.certificate
    if not named:
        return
    file = facts.texts[named]
    problem = file.problem or _authorities_problem(file.text)
    if problem:
        remedy = "name a file with certificates in PEM; the path starts at the stack file's folder"
        yield Wrong(at("cluster", "certificate"), f"`{named}` has no authorities: {problem}", remedy)


def _authorities_problem(text: str) -> str | None:
    """Reads the file as Python does for calls to the cluster."""
    # Imported here, so that other stacks do not wait for it.
    import ssl

    try:
        # Comments in a bundle may be in any language.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text.encode("ascii", "replace").decode())
    except (ssl.SSLError, ValueError):
        return "it is not a file of certificates in PEM"
    return None


_TAKEN = ("/bin", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr")


def _job_images(stack: OpenPaiStack) -> Iterator[tuple[str, OpenPaiJob, str]]:
    """The image of each job, without malformed ones (TY304) and those in a missing registry (TY873)."""
    for row in images_of(stack):
        uri = row.text.replace(OURS, stack.registry.existing or OURS)
        if "${" not in uri and not has_capitals(row):
            yield row.job, stack.jobs[row.job], uri


@rule("TY877", "an image that OpenPAI's checker refuses")
def refused_image(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, _job, uri in _job_images(stack):
        if problem := image_checker_problem(uri):
            message = f"before a task begins, OpenPAI looks for its image, and refuses `{uri[:120]}`: {problem}"
            remedy = "push the image under a tag of lowercase letters, digits and `-_.`, and use that tag here"
            yield Wrong(at("jobs", name, "image"), message, remedy)


@rule("TY878", "a password that OpenPAI does not use for the image")
def other_registry(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job, uri in _job_images(stack):
        auth = job.image_auth
        if auth is not None and auth.registry is not None and ignores_password(uri, same_registry(auth.registry)):
            message = (
                f"`{uri[:120]}` names no registry, so OpenPAI requests it from Docker Hub, without the password of "
                f"`{auth.registry}`"
            )
            remedy = f"remove `registry`, which then is {registry_of(uri)}, or write the image with its registry"
            yield Wrong(at("jobs", name, "imageAuth", "registry"), message, remedy)


@rule("TY879", "a password that OpenPAI changes", severity="warning")
def changed_password(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        # None if only the stack file is read, in which the value is encrypted.
        value = job.image_auth.password.value if job.image_auth else None
        if value and (changed := changed_in_password(value)):
            what = "cannot read a password that is only `=`" if value == changed else "reads & < > \" and ' as HTML's"
            message = f"OpenPAI's image checker {what}: it would use another password, and refuse the image"
            remedy = "give the registry's user a password, or an access token, of letters and digits"
            yield Wrong(at("jobs", name, "imageAuth", "password"), message, remedy)


@rule("TY899", "a text that OpenPAI's runtime does not read unchanged")
def changed_texts(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for path, value in _texts_of_runtime(job):
            if all(map(reads_unchanged, _texts_in(value))):
                continue
            message = (
                "OpenPAI's runtime reads such a text as YAML between quotes that it chose: backslashes, line breaks "
                "and both kinds of quotes in one text do not arrive"
            )
            yield Wrong((*at("jobs", name), *path), message, "write it without them")
        for path, command in _commands_of_runtime(job):
            if reads_unchanged(command) or not has_runtime_reference(command):
                continue
            message = (
                "a command with a reference arrives only without backslashes, line breaks and both kinds of quotes"
            )
            remedy = (
                "put the reference into a command of its own before it, as in `place=<% $data.uri[0] %>`, and use "
                "`$place`: commands of one list share a shell"
            )
            yield Wrong((*at("jobs", name), *path), message, remedy)


def _texts_of_runtime(job: OpenPaiJob) -> Iterator[tuple[_Place, Any]]:
    """Texts other than commands that the runtime reads."""
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


def _commands_of_runtime(job: OpenPaiJob) -> Iterator[tuple[_Place, str]]:
    """Commands that the runtime would change. The plan rewrites most commands so that they arrive unchanged."""
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
