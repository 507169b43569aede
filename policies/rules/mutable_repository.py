# SPDX-License-Identifier: Apache-2.0
"""If a tag can be pushed again, a run that starts again may run another image."""

from components.values.resource_types import all_resource_types
from policies.rule import RequiredValue, value_rule

RULE = value_rule(
    id="mutable-repository",
    # Advisory, because a stack may choose it: people try images out under one tag.
    level="advisory",
    asks="A tag of an image means the same image for ever.",
    remedy="set `trainyard:registry: { immutable: true }`, or name images by digest",
    because="a tag can be pushed again",
    where={
        token: RequiredValue(
            row.immutable_by.input,
            row.immutable_by.values.__contains__,
            {f"{row.immutable_by.input}: {value}": value for value in row.immutable_by.values},
            {f"without {row.immutable_by.input}": None},
        )
        for token, row in all_resource_types().items()
        if row.immutable_by
    },
)
