# SPDX-License-Identifier: Apache-2.0
"""Checks of names and places that AWS would refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator

from catalog.tables import table
from components.aws.stack import NAME, AwsDl1Stack, rule
from schemas.checks.name_checks import OUR_TAGS
from schemas.facts import Facts
from schemas.findings import Wrong, at
from schemas.name_suggestions import suggest_name

_REPOSITORY = re.compile(r"(?=.{2,256}$)[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
# Tags of IAM's roles and policies, which allow fewer characters than other services.
_TAG = re.compile(r"[\w\s.:/=+@-]*")
# Tags of machines whose metadata service shows them. Ours does, because a machine reads there which node it is.
_TAG_IN_METADATA = re.compile(r"(?!\.{1,2}$|_index$)[A-Za-z0-9+=.,_:@;-]*")
MOST_TAGS = 50
# The days for which CloudWatch can keep the lines of a log group.
RETENTIONS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
# Resources whose names are in the policies of a stack, and how to make such a name known.
_NAMED = {
    "bucket": "name it here: `bucket: { existing: NAME }`",
    "registry": "name it here: `registry: { existing: REPOSITORY }`",
    "logs": "this stack makes a log group of its own",
}


@rule("TY750", "nobody may start runs on AWS")
def no_aws_users(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    users = stack.access.users
    if stack.makes("access") and not (users.group or users.role) and stack.access.mode != "proof-of-concept":
        message = "no users are named, so nobody would get access"
        yield Wrong(at("access"), message, "add `users: { group: <name> }`, or `users: { role: <name> }`")


@rule("TY751", "a name of a group or role that AWS would refuse")
def principal_names(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    access = stack.access
    names = {("users", "group"): access.users.group, ("users", "role"): access.users.role, ("runs",): access.runs}
    for key, name in names.items():
        if name is not None and not NAME.fullmatch(name):
            message = f"`{name[:100]}` is not a valid name in IAM"
            yield Wrong(at("access", *key), message, "write the name alone: up to 64 letters, digits and +=,.@_-")
    made = stack.physical("nodes")
    if stack.makes("access") and access.runs is None and not NAME.fullmatch(made):
        message = f"the role of the nodes would be `{made}`, and IAM takes 64 letters at most"
        yield Wrong(at("environment"), message, "shorten `team` or `environment`")


@rule("TY752", "a permissions boundary that does not hold")
def permissions_boundary(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    boundary, path = stack.access.permissions_boundary, at("access", "permissionsBoundary")
    if boundary is None:
        return
    owner, name = boundary.removeprefix("arn:aws:iam::").split(":policy/", 1)
    if not stack.makes("access"):
        yield Wrong(path, "this stack makes no role that a boundary could hold", "remove it")
    elif owner not in ("aws", stack.account or owner):
        message = f"the boundary is of the account {owner}, and IAM takes one of the role's own account only"
        yield Wrong(path, message, f"name a policy of the account {stack.account}")
    elif name.startswith(stack.physical("")):
        message = f"the deployer may change policies named `{stack.physical('')}…`, so also this boundary"
        yield Wrong(path, message, "give the boundary another name")


@rule("TY650", "a bucket name that S3 would refuse")
def bucket_name(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    names = [(at("bucket", "name"), stack.bucket.name), (at("bucket", "existing"), stack.bucket.existing)]
    for job, spec in stack.jobs.items():
        names += [(at("jobs", job, "inputs", index, "bucket"), item.bucket) for index, item in enumerate(spec.inputs)]
    for path, name in names:
        if name is not None and not _is_bucket_name(name):
            message = f"`{name[:80]}` is not a valid bucket name"
            yield Wrong(
                path, message, "use 3 to 63 lowercase letters, digits, `-` and `.`, beginning with a letter or digit"
            )
    made = stack.physical("training")
    if stack.makes("bucket") and stack.bucket.name is None and not _is_bucket_name(made):
        message = f"the bucket would be called `{made}`, and S3 takes 63 letters at most"
        yield Wrong(at("environment"), message, "write `bucket: { name: <name> }`, or shorten `team` or `environment`")


def _is_bucket_name(name: str) -> bool:
    return re.fullmatch(table("aws_dl1")["names"]["bucket"], name) is not None


@rule("TY651", "a repository name that ECR would refuse")
def repository_name(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    for key, name in (("repository", stack.registry.repository), ("existing", stack.registry.existing)):
        if name is not None and not _REPOSITORY.fullmatch(name):
            message = f"`{name[:80]}` is not a valid repository name"
            yield Wrong(at("registry", key), message, "use 2 to 256 lowercase letters, digits, `-`, `_`, `.` and `/`")


@rule("TY652", "a log retention that CloudWatch does not offer")
def log_retention(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    days = stack.logs.retention_days
    if days not in RETENTIONS:
        nearest = min(RETENTIONS, key=lambda choice: abs(choice - days))
        yield Wrong(at("logs", "retentionDays"), f"CloudWatch cannot keep logs for {days} days", f"use {nearest}")


@rule("TY654", "tags that AWS would refuse")
def invalid_aws_tags(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    # The tag `Name` is set, too.
    own = [key for key in stack.tags if key not in OUR_TAGS]
    if len(own) + len(OUR_TAGS) + 1 > MOST_TAGS:
        allowed = MOST_TAGS - len(OUR_TAGS) - 1
        message = f"there are {len(own)} tags; AWS allows {MOST_TAGS}, and trainyard sets up to {len(OUR_TAGS) + 1}"
        yield Wrong(at("tags"), message, f"keep {allowed} of them")
    for key, value in stack.tags.items():
        if not 0 < len(key) <= 128 or len(value) > 256 or not _TAG.fullmatch(key + value) or key.startswith("aws:"):
            message = f"the tag `{key[:40]}` is longer than AWS allows, or has characters that IAM refuses"
            remedy = (
                "use up to 128 letters, digits, spaces and `_.:/=+-@` for the key, not `aws:…`, and 256 for the value"
            )
            yield Wrong(at("tags", key), message, remedy)
        elif stack.jobs and not _TAG_IN_METADATA.fullmatch(key):
            message = f"AWS starts no machine with the tag `{key[:40]}`: its metadata service cannot show such a key"
            remedy = "use letters, digits and `_.:=+-@` for the key: no spaces, no `/`, and not `.`, `..` or `_index`"
            yield Wrong(at("tags", key), message, remedy)


@rule("TY653", "a region that AWS does not have")
def unknown_aws_region(stack: AwsDl1Stack, facts: Facts) -> Iterator[Wrong]:
    if stack.region not in facts.regions:
        remedy = suggest_name(stack.region, facts.regions)
        yield Wrong(("config", "aws:region"), f"`{stack.region}` is not a region of AWS", remedy)


@rule("TY867", "something is taken from another stack that policies have to name")
def taken_names(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is None:
        return
    if "access" in stack.uses.take:
        message = "policies name the jobs of their own stack, so those of another stack give nothing to these jobs"
        remedy = "take the rest, and make the access here, or name the role: `access: { existing: true, runs: ROLE }`"
        yield Wrong(at("uses", "take"), message, remedy)
    if not stack.makes("access"):
        return
    for concern in stack.uses.take:
        if concern in _NAMED:
            message = f"this stack's policies have to name the {concern}, but only {stack.uses.stack} knows its name"
            yield Wrong(at("uses", "take"), message, f"remove `{concern}`; {_NAMED[concern]}")
