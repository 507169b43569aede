# SPDX-License-Identifier: Apache-2.0
"""A run that fails without logs has to fail again before anybody knows why."""

from collections.abc import Mapping

from policies.openpai_jobs import RUN
from policies.rule import (
    PASS,
    Judge,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    RequiredValue,
    Unknown,
    by_type,
    fail,
    judge_value,
)

JOB = "oci:DataScience/job:Job"
# On OCI the job decides. On OpenPAI the cluster keeps the output.
BY_RUN = "aws-dl1"
NO_LOGS = "its runs write no logs"
OF_A_JOB = RequiredValue(
    "jobLogConfigurationDetails.enableLogging", True, {"on": True}, {"off": False, "OCI's default": None}
)


def judge_run(resource: JudgedResource) -> PolicyVerdict:
    if resource.properties.get("platform") != BY_RUN:
        return PASS
    # The group may be created by the same `up`, so an unknown value is enough.
    group = (resource.properties.get("cluster") or {}).get("logGroup")
    return PASS if isinstance(group, Unknown) or group else fail(NO_LOGS)


def _run(**cluster: object) -> JudgedResource:
    return JudgedResource(RUN, {"platform": BY_RUN, "cluster": {"job": "resnet", **cluster}})


ROWS: Mapping[str, Judge] = {JOB: judge_value(OF_A_JOB, NO_LOGS), RUN: judge_run}

RULE = PolicyRule(
    id="logging-off",
    # Advisory, because a stack may choose it: `trainyard:logs: { enabled: false }`.
    level="advisory",
    asks="Runs write logs.",
    remedy="set enableLogging of jobLogConfigurationDetails (`trainyard:logs: { enabled: true }`, the default)",
    types=tuple(ROWS),
    judge=by_type(ROWS),
    passes={
        **{name: OF_A_JOB.example(JOB, value) for name, value in OF_A_JOB.passes.items()},
        "a group of AWS": _run(logGroup="vision-dev-training"),
        "a group that is made later": _run(logGroup=Unknown("cluster.logGroup")),
        "a run of a job of OCI": JudgedResource(RUN, {"platform": "oci"}),
    },
    fails={
        **{name: OF_A_JOB.example(JOB, value) for name, value in OF_A_JOB.fails.items()},
        "no group of AWS": _run(),
    },
    unknown={
        "decided elsewhere": OF_A_JOB.example(JOB, Unknown(OF_A_JOB.path)),
        "a cluster decided elsewhere": JudgedResource(RUN, {"platform": BY_RUN, "cluster": Unknown("cluster")}),
    },
)
