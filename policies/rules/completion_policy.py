# SPDX-License-Identifier: Apache-2.0
"""When tasks end differently, only the completion policy decides the state of the job. Parameter servers never end."""

from typing import Any

from policies.openpai_jobs import RUN, roles_of, sample_openpai_run
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

WANTED = ("minFailedInstances", "minSucceededInstances")


def judge_completion(resource: JudgedResource) -> PolicyVerdict:
    roles = roles_of(resource)
    if len(roles) == 1 and all(int(role.get("instances") or 1) == 1 for role in roles.values()):
        return PASS  # one task: its end is the job's
    return verdict_on_every(judge_role_completion, roles.items())


def judge_role_completion(role: tuple[str, Any]) -> PolicyVerdict:
    name, properties = role
    completion = properties.get("completion") or {}
    missing = [key for key in WANTED if not completion.get(key)]
    return fail_because(f"the task role `{name}` has no {' and no '.join(missing)}") if missing else PASS


RULE = PolicyRule(
    id="completion-policy",
    level="mandatory",
    asks="A job of several tasks on OpenPAI says when it has failed and when it has succeeded.",
    remedy="set minFailedInstances and minSucceededInstances of each task role (`completion` of the role in the stack"
    " file)",
    types=(RUN,),
    judge=judge_completion,
    passes={
        "both said": sample_openpai_run(),
        "a run on another platform": JudgedResource(RUN, {"platform": "oci"}),
        "failures do not count": sample_openpai_run(
            role={"completion": {"minFailedInstances": -1, "minSucceededInstances": -1}}
        ),
        "one task": sample_openpai_run(role={"instances": 1, "completion": None}),
    },
    fails={
        "none": sample_openpai_run(role={"completion": None}),
        "one half": sample_openpai_run(role={"completion": {"minFailedInstances": 1}}),
        "two roles of one task": sample_openpai_run(
            taskRoles={"ps": {"completion": {"minFailedInstances": 1, "minSucceededInstances": 1}}, "worker": {}}
        ),
    },
    unknown={
        "decided elsewhere": JudgedResource(RUN, {"protocol": Unknown("protocol")}),
        "a policy of another resource": sample_openpai_run(
            role={"completion": Unknown("protocol.taskRoles.worker.completion")}
        ),
    },
)
