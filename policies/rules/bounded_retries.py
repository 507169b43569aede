# SPDX-License-Identifier: Apache-2.0
"""OpenPAI retries whatever the reason of a failure. Without a limit, a bug occupies machines again and again."""

from typing import Any

from policies.openpai_jobs import RUN, protocol_of_run, roles_of, sample_openpai_run
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

# The protocol has no value for unlimited retries. So large a count stands for it.
ENDLESS = 10_000


def judge_retries(resource: JudgedResource) -> PolicyVerdict:
    protocol = protocol_of_run(resource)
    counts = [
        ("the job", protocol.get("jobRetryCount")),
        *((f"each task of `{name}`", role.get("taskRetryCount")) for name, role in roles_of(resource).items()),
    ]
    return verdict_on_every(judge_retry_count, counts)


def judge_retry_count(counted: tuple[str, Any]) -> PolicyVerdict:
    what, count = counted
    if count is None or 0 <= int(count) < ENDLESS:
        return PASS
    return fail_because(f"{what} is retried without limit" + (", even after success" if int(count) == -2 else ""))


RULE = PolicyRule(
    id="bounded-retries",
    level="advisory",
    asks="A job on OpenPAI has a limited number of retries.",
    remedy="set jobRetryCount and taskRetryCount to 0 or more (`retry: { count: 2 }` of the role in the stack file)",
    types=(RUN,),
    judge=judge_retries,
    passes={
        "never": sample_openpai_run(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "three times": sample_openpai_run(jobRetryCount=3.0),
        "each task twice": sample_openpai_run(role={"taskRetryCount": 2}),
    },
    fails={
        "without end": sample_openpai_run(jobRetryCount=-1),
        "the largest count there is": sample_openpai_run(jobRetryCount=2147483647.0),
        "after success, too": sample_openpai_run(jobRetryCount=-2.0),
        "a task without end": sample_openpai_run(role={"taskRetryCount": -1}),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "a count of another resource": sample_openpai_run(jobRetryCount=Unknown("protocol.jobRetryCount")),
    },
)
