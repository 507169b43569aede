# SPDX-License-Identifier: Apache-2.0
"""OpenPAI retries whatever the reason of a failure. Without a limit, a bug occupies machines again and again."""

from typing import Any

from policies.openpai_jobs import RUN, job, protocol_of, roles_of
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, every, fail

# The protocol has no value for unlimited retries. So large a count stands for it.
ENDLESS = 10_000


def judge(resource: JudgedResource) -> PolicyVerdict:
    protocol = protocol_of(resource)
    counts = [
        ("the job", protocol.get("jobRetryCount")),
        *((f"each task of `{name}`", role.get("taskRetryCount")) for name, role in roles_of(resource).items()),
    ]
    return every(judge_count, counts)


def judge_count(counted: tuple[str, Any]) -> PolicyVerdict:
    what, count = counted
    if count is None or 0 <= int(count) < ENDLESS:
        return PASS
    return fail(f"{what} is retried without limit" + (", even after success" if int(count) == -2 else ""))


RULE = PolicyRule(
    id="bounded-retries",
    level="advisory",
    asks="A job on OpenPAI has a limited number of retries.",
    remedy="set jobRetryCount and taskRetryCount to 0 or more (`retry: { count: 2 }` of the role in the stack file)",
    types=(RUN,),
    judge=judge,
    passes={
        "never": job(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "three times": job(jobRetryCount=3.0),
        "each task twice": job(role={"taskRetryCount": 2}),
    },
    fails={
        "without end": job(jobRetryCount=-1),
        "the largest count there is": job(jobRetryCount=2147483647.0),
        "after success, too": job(jobRetryCount=-2.0),
        "a task without end": job(role={"taskRetryCount": -1}),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "a count of another resource": job(jobRetryCount=Unknown("protocol.jobRetryCount")),
    },
)
