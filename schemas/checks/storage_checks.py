# SPDX-License-Identifier: Apache-2.0
"""Checks of data that would be lost or not found, and of files that must not be in the code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from schemas.checks.network_checks import is_production_stack
from schemas.facts import Facts
from schemas.findings import Wrong, at, rule
from schemas.model import Stack

# Files that usually hold keys. Everybody who may read the job may read its code.
_KEYS = re.compile(
    r"(?:.*/)?(?:id_(?:rsa|dsa|ecdsa|ed25519)|\.env(?:\.[a-z]+)?|\.netrc|\.pypirc|\.pgpass|kaggle\.json|\.[a-z]+/(?:config|credentials)"
    r"|[^/]*(?:private|api|secret)[_-]?key[^/]*\.pem|[^/]*\.(?:p12|pfx|kdbx))"
)
_NO_PREFIX = re.compile(r"/|[a-z][a-z0-9+.-]*://")
_GIT = re.compile(r"(?:(?:https?|ssh|git)://[^\s/]+/\S+|[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:\S+)")


@rule("TY614", "data that production would lose", severity="warning")
def not_kept(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if not is_production_stack(stack):
        return
    if not stack.bucket.keep and stack.bucket.existing is None:
        message = f"`pulumi destroy` would delete the bucket of `{stack.environment}` with everything in it"
        yield Wrong(at("bucket", "keep"), message, "remove `keep: false`")
    if not stack.registry.keep and stack.registry.existing is None:
        message = f"`pulumi destroy` would delete the images of `{stack.environment}`"
        yield Wrong(at("registry", "keep"), message, "remove `keep: false`")


@rule("TY821", "keys in the code folder", severity="warning")
def keys_in_code(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        folder = facts.folders.get(job.code.folder or "") if job.code else None
        for file in sorted(folder.files) if folder and folder.inside else ():
            if _KEYS.fullmatch(file):
                message = f"`{file}` would become part of the job: everybody who may read the job could read it"
                remedy = "move it out of the folder, and pass secrets as `secure:` variables"
                yield Wrong(at("jobs", name, "code"), message, remedy)


@rule("TY822", "a prefix that matches no object", severity="warning")
def impossible_prefix(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for index, item in enumerate(job.inputs):
            if _NO_PREFIX.match(item.prefix):
                bare = item.prefix.lstrip("/")
                message = f"no object's name begins with `{item.prefix[:80]}`, so the mount would be empty"
                is_url = "://" in item.prefix
                remedy = "write only the part after the bucket's name" if is_url else f"write `{bare}`"
                yield Wrong(at("jobs", name, "inputs", index, "prefix"), message, remedy)


@rule("TY823", "an address that git cannot clone")
def git_address(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        git = job.code.git if job.code else None
        if git and not _GIT.fullmatch(git.url):
            message = "is not a valid address of a git repository"
            remedy = "write https://HOST/PATH.git, or git@HOST:PATH.git with a `secret`"
            yield Wrong(at("jobs", name, "code", "git", "url"), message, remedy)
