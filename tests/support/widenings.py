# SPDX-License-Identifier: Apache-2.0
"""Statements of OCI and of AWS, and changes that make them grant more."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

VERBS = ("inspect", "read", "use", "manage")
AwsStatement = dict[str, Any]


@dataclass(frozen=True)
class Allow:
    """A statement of OCI, in its parts."""

    who: str
    grant: str
    where: str
    condition: str = ""

    @property
    def text(self) -> str:
        return f"Allow {self.who} to {self.grant} in {self.where}" + (
            f" where {self.condition}" if self.condition else ""
        )


def widened_oci(allow: Sequence[Allow], chance: random.Random) -> list[Allow]:
    """The statements with one widened, or with one more."""
    at = chance.randrange(len(allow))
    one = allow[at]
    verb, kind = one.grant.split()
    wider = chance.choice(
        [
            Allow(one.who, f"{VERBS[min(VERBS.index(verb) + 1, 3)]} {kind}", one.where, one.condition),
            Allow(one.who, one.grant, one.where),
            Allow("any-user", one.grant, one.where, one.condition),
            Allow(one.who, one.grant, "tenancy", one.condition),
            Allow(one.who, f"{verb} all-resources", one.where, one.condition),
        ]
    )
    return [*allow[:at], wider, *allow[at + (chance.random() < 0.7) :]]


def allow_aws(action: str, on: str, condition: AwsStatement) -> AwsStatement:
    return {"Effect": "Allow", "Action": action, "Resource": on, **({"Condition": condition} if condition else {})}


def widened_aws(rows: Sequence[AwsStatement], chance: random.Random, more: AwsStatement) -> list[AwsStatement]:
    """The statements with one widened, or with `more`."""
    at = chance.randrange(len(rows))
    one = rows[at]
    free = {key: value for key, value in one.items() if key != "Condition"}
    wider = chance.choice([free, {**one, "Resource": "*"}, {**one, "Action": "*"}, more])
    return [*rows[:at], wider, *rows[at + (chance.random() < 0.7) :]]
