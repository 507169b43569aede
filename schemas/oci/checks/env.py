# SPDX-License-Identifier: Apache-2.0
"""How much environment OCI takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from schemas.checks.registry import Wrong, at
from schemas.facts import Facts
from schemas.model import EnvValue
from schemas.oci.checks.registry import rule
from schemas.oci.model import OciStack

# Of all variables of a run, names and values together; trainyard's own take up to a few thousand of them.
MOST_CHARACTERS = 20_000
OUR_CHARACTERS = 3_000


@rule("TY505", "more environment than OCI takes")
def too_much(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for run, one in job.runs.items():
            # The command and its arguments are told in the environment too: to the launcher, and to ADS.
            words = 2 * sum(len(word) + 4 for word in (job.command, *one.args))
            largest = max((_characters({**job.env, **role.env, **one.env}) for role in job.roles.values()), default=0)
            if largest + words + OUR_CHARACTERS > MOST_CHARACTERS:
                message = f"each node is told more than {MOST_CHARACTERS} characters: variables, command and arguments"
                remedy = "keep what is long in the bucket, or in a file of the code folder"
                yield Wrong(at("jobs", name, "runs", run), message, remedy)


def _characters(variables: Mapping[str, EnvValue]) -> int:
    known = ((key, value if isinstance(value, str) else value.value or "") for key, value in variables.items())
    return sum(len(key) + len(value) for key, value in known)
