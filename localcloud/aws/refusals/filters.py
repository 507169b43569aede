# SPDX-License-Identifier: Apache-2.0
"""Refuses filters that an operation of EC2 does not have. The documentation in botocore's models names the filters."""

from __future__ import annotations

import html
import re
from functools import cache

from localcloud.aws.calls import AwsCall
from localcloud.aws.errors import Reason, RefusalError

# The names are marked as code there. So are some values of filters, which does no harm.
_NAMED = re.compile(r"<code>([^<]+)</code>")
_GIVEN = re.compile(r"Filter\.\d+\.Name")


def refuse(call: AwsCall) -> None:
    """Raises EC2's refusal of a filter that does not exist. moto itself refuses existing ones that it lacks."""
    given = [str(value) for name, value in call.parameters.items() if _GIVEN.fullmatch(name)]
    known = _names(call.operation) if given else frozenset()
    for name in given:
        # Some operations accept filters by tags without documenting them.
        if known and name not in known and not name.startswith("tag"):
            raise RefusalError(Reason.REFUSED, f"The filter '{name}' is invalid")


@cache
def _names(operation: str) -> frozenset[str]:
    """The names of an operation's filters; empty if its model lists none, and then no filter is refused."""
    from moto.core.utils import get_service_model

    model = get_service_model("ec2")
    shape = model.operation_model(operation).input_shape if operation in model.operation_names else None
    members = shape.members if shape is not None else {}
    text = next((members[name].documentation for name in ("Filters", "Filter") if name in members), "")
    return frozenset(html.unescape(name) for name in _NAMED.findall(text))
