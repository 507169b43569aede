# SPDX-License-Identifier: Apache-2.0
"""Hung training costs what working training costs: every job says when it has gone on long enough."""

from policies.rule import Resource, Rule
from policies.verdicts import PASS, Unknown, Verdict, either, fail

JOB = "oci:DataScience/job:Job"
RUN = "trainyard:index:Run"
# Where a job says it: alone, or for its node groups together.
PARTS = ("jobConfigurationDetails", "jobNodeConfigurationDetails")


def judge(resource: Resource) -> Verdict:
    if resource.type == RUN:
        return judge_minutes(resource.properties.get("maximumRuntimeMinutes"))
    return either(*(lambda part=part: judge_part(resource, part) for part in PARTS))


def judge_part(resource: Resource, part: str) -> Verdict:
    details = resource.properties.get(part) or {}
    return judge_minutes(details.get("maximumRuntimeInMinutes"))


def judge_minutes(minutes: object) -> Verdict:
    return PASS if minutes and float(str(minutes)) > 0 else fail("may run, and cost, without end")


RULE = Rule(
    id="maximum-runtime",
    level="mandatory",
    asks="Every job and run has a maximum runtime.",
    remedy="set maximumRuntimeInMinutes (`maximumRuntimeMinutes` of the job in the stack file)",
    types=(JOB, RUN),
    judge=judge,
    passes={
        "a job of single nodes": Resource(JOB, {"jobConfigurationDetails": {"maximumRuntimeInMinutes": "1440"}}),
        "a job of node groups": Resource(JOB, {"jobNodeConfigurationDetails": {"maximumRuntimeInMinutes": "60"}}),
        "a run": Resource(RUN, {"maximumRuntimeMinutes": 60.0}),
    },
    fails={
        "nothing said": Resource(JOB, {"jobConfigurationDetails": {"jobType": "DEFAULT"}}),
        "a run without": Resource(RUN, {"attempt": 1.0}),
        "none": Resource(JOB, {"jobConfigurationDetails": {"maximumRuntimeInMinutes": "0"}}),
    },
    unknown={"decided elsewhere": Resource(JOB, {"jobConfigurationDetails": Unknown("jobConfigurationDetails")})},
)
