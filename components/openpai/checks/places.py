# SPDX-License-Identifier: Apache-2.0
"""Checks of what is around the jobs: the cluster, where results go, and what OpenPAI does not make."""

from __future__ import annotations

from collections.abc import Iterator

from components.openpai.checks.registry import rule
from components.openpai.stack import OpenPaiStack
from schemas.checks.images import OURS
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts


def _is_local(uri: str) -> bool:
    return uri.startswith(("http://127.", "http://localhost", "http://[::1]"))


@rule("TY870", "a token that others on the network can read", severity="warning")
def plain_http(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    uri = stack.cluster.uri
    if uri.startswith("http://") and not _is_local(uri):
        message = "over http:// everybody on the way can read the token and the job's secrets"
        yield Wrong(at("cluster", "uri"), message, "use https://, with `certificate` if its authority is your own")


@rule("TY871", "nothing says where results go")
def no_store(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    if stack.jobs and stack.storage is None and stack.bucket.existing is None:
        message = "a task's own files go when it ends: nothing keeps checkpoints and results"
        remedy = (
            "add `trainyard:storage: { name: vision-nfs }` with the name of a storage of the cluster, or a bucket that "
            "speaks S3: `trainyard:bucket: { existing: … }`"
        )
        yield Wrong(at("jobs"), message, remedy)


@rule("TY872", "a bucket that tasks cannot use")
def bucket(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
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


@rule("TY873", "a registry that OpenPAI does not make")
def registry(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    if stack.registry.existing is not None:
        return
    for name, job in stack.jobs.items():
        if OURS in job.image:
            message = f"`{OURS}` is the stack's registry, but OpenPAI makes none"
            remedy = (
                "add `trainyard:registry: { existing: registry.example.com/vision/train }` with your registry's host"
            )
            yield Wrong(at("jobs", name, "image"), message, f"{remedy} and repository")


@rule("TY874", "another stack that has nothing for this one")
def uses(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None:
        message = "a stack on OpenPAI makes nothing that another one could take"
        yield Wrong(at("uses"), message, "remove it, and name cluster, storage and registry here")


@rule("TY875", "a storage in a folder that is not free")
def mount(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    own = stack.storage.mount if stack.storage else None
    taken = next((folder for folder in _TAKEN if own and f"{own}/".startswith(f"{folder}/")), None)
    if taken:
        yield Wrong(at("storage", "mount"), f"{taken} belongs to the system or to OpenPAI", "use a folder below /mnt")


@rule("TY876", "authorities that cannot be read")
def certificate(stack: OpenPaiStack, facts: Facts) -> Iterator[Wrong]:
    named = stack.cluster.certificate
    if not named:
        return
    file = facts.texts[named]
    problem = file.problem or _why_no_authorities(file.text)
    if problem:
        remedy = "name a file with certificates in PEM; the path starts at the stack file's folder"
        yield Wrong(at("cluster", "certificate"), f"`{named}` has no authorities: {problem}", remedy)


def _why_no_authorities(text: str) -> str | None:
    """Python's own reader decides, as it will when the cluster is called."""
    # Other stacks do not wait for this import.
    import ssl

    try:
        # Comments in a bundle may be in any language.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text.encode("ascii", "replace").decode())
    except (ssl.SSLError, ValueError):
        return "it is not a file of certificates in PEM"
    return None


_TAKEN = ("/bin", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr")
