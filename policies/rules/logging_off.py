# SPDX-License-Identifier: Apache-2.0
"""A run that fails without logs has to fail again before anybody knows why."""

from collections.abc import Mapping
from typing import Any

from catalog.platforms import platforms
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
    fail_because,
    judge_value,
)

JOB = "oci:DataScience/job:Job"
NO_LOGS = "its runs write no logs"
OF_A_JOB = RequiredValue(
    "jobLogConfigurationDetails.enableLogging", True, {"on": True}, {"off": False, "OCI's default": None}
)


def judge_run_logs(resource: JudgedResource) -> PolicyVerdict:
    row = platforms().get(str(resource.properties.get("platform")))
    if row is None or not row.run_logs:
        return PASS
    *path, last = row.run_logs.split(".")
    values: Any = resource.properties
    for key in path:
        values = values.get(key) or {}
    # The place may be created by the same `up`, so an unknown value is enough.
    return PASS if isinstance(place := values.get(last), Unknown) or place else fail_because(NO_LOGS)


def _run_on_cluster(cluster: Any) -> JudgedResource:
    return JudgedResource(RUN, {"platform": "aws-dl1", "cluster": cluster})


ROWS: Mapping[str, Judge] = {JOB: judge_value(OF_A_JOB, NO_LOGS), RUN: judge_run_logs}

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
        "a group of AWS": _run_on_cluster({"logGroup": "vision-dev-training"}),
        "a group that is made later": _run_on_cluster({"logGroup": Unknown("cluster.logGroup")}),
        "a run of a job of OCI": JudgedResource(RUN, {"platform": "oci"}),
    },
    fails={
        **{name: OF_A_JOB.example(JOB, value) for name, value in OF_A_JOB.fails.items()},
        "no group of AWS": _run_on_cluster({"job": "resnet"}),
    },
    unknown={
        "decided elsewhere": OF_A_JOB.example(JOB, Unknown(OF_A_JOB.path)),
        "a cluster decided elsewhere": _run_on_cluster(Unknown("cluster")),
    },
)
