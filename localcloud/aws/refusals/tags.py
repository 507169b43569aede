# SPDX-License-Identifier: Apache-2.0
"""Refuses tags of AWS's own, and a tag that is given twice. Otherwise access could be checked for one value, and the
other one be set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table
from localcloud.aws.access import resource_tags, s3_needs
from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.calls import AwsCall
from localcloud.aws.services import Wire

_TAG = re.compile(r"((?:.*\.)?(?:Tag|Tags\.member))\.\d+\.Key", re.ASCII)
_TYPE = re.compile(r"((?:.*\.)?TagSpecifications?)\.\d+\.ResourceType", re.ASCII)


def refuse_tags(call: AwsCall) -> None:
    """Refuses a tag, and a type of resource with tags, that a call gives twice, and a tag of AWS's own."""
    for values, of in _tag_lists(call):
        refused = {
            "repeated": next((value for number, value in enumerate(values) if value in values[:number]), None),
            "reserved": next((value for value in values if value.lower().startswith("aws:")), None),
        }
        for rule, value in refused.items():
            rows = table("aws_refusals")[rule]
            row = rows.get(f"{call.service.prefix} {of}".strip()) or rows.get(call.service.prefix) or rows["any"]
            if value is not None:
                raise RefusalError(Reason.REFUSED, row["message"].format(value=value), row["code"])


def _tag_lists(call: AwsCall) -> Iterator[tuple[list[str], str]]:
    """Lists whose values must differ: the keys of tags, and the types of resources (`of` is then `type`)."""
    if call.service.wire is Wire.JSON:
        for rows in (call.parameters.get(name) for name in ("Tags", "tags")):
            if isinstance(rows, list):
                yield [resource_tags.tag_pair(row)[0] for row in rows if isinstance(row, Mapping)], ""
            elif isinstance(rows, Mapping):
                yield list(rows), ""
    elif call.service.wire is Wire.S3:
        document: Any = call.document if isinstance(call.document, Mapping) else {}
        for rows in (document.get("TagSet"), document.get("Tags")):
            if isinstance(rows, list):
                yield [resource_tags.tag_pair(row)[0] for row in rows], ""
        yield [name for name, _ in s3_needs.object_tags(call)], "header" if call.operation != "PutObjectTagging" else ""
    else:
        for pattern, of in ((_TAG, ""), (_TYPE, "type")):
            lists: dict[str, list[str]] = {}
            for name, value in call.parameters.items():
                if match := pattern.fullmatch(name):
                    # IAM's keys differ in more than their case.
                    lists.setdefault(match[1], []).append(value.lower() if call.service.prefix == "iam" else value)
            yield from ((values, of) for values in lists.values())
