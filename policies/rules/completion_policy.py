# SPDX-License-Identifier: Apache-2.0
"""When tasks end differently, only the completion policy decides the state of the job. Parameter servers never end."""

from typing import Any

from policies.openpai_jobs import RUN, job, roles_of
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, every, fail

WANTED = ("minFailedInstances", "minSucceededInstances")


def judge(resource: JudgedResource) -> PolicyVerdict:
    roles = roles_of(resource)
    if len(roles) == 1 and all(int(role.get("instances") or 1) == 1 for role in roles.values()):
        return PASS  # one task: its end is the job's
    return every(judge_role, roles.items())


def judge_role(role: tuple[str, Any]) -> PolicyVerdict:
    name, properties = role
    completion = properties.get("completion") or {}
    missing = [key for key in WANTED if not completion.get(key)]
    return fail(f"the task role `{name}` has no {' and no '.join(missing)}") if missing else PASS


RULE = PolicyRule(
    id="completion-policy",
    level="mandatory",
    asks="A job of several tasks on OpenPAI says when it has failed and when it has succeeded.",
    remedy="set minFailedInstances and minSucceededInstances of each task role (`completion` of the role in the stack"
    " file)",
    types=(RUN,),
    judge=judge,
    passes={
        "both said": job(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "failures do not count": job(role={"completion": {"minFailedInstances": -1, "minSucceededInstances": -1}}),
        "one task": job(role={"instances": 1, "completion": None}),
    },
    fails={
        "none": job(role={"completion": None}),
        "one half": job(role={"completion": {"minFailedInstances": 1}}),
        "two roles of one task": job(
            taskRoles={"ps": {"completion": {"minFailedInstances": 1, "minSucceededInstances": 1}}, "worker": {}}
        ),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "a policy of another resource": job(role={"completion": Unknown("protocol.taskRoles.worker.completion")}),
    },
)
