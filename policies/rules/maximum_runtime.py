# SPDX-License-Identifier: Apache-2.0
"""Training that hangs costs as much as training that works, so every job needs a maximum runtime."""

from policies.openpai_jobs import RUN
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_of_either

JOB = "oci:DataScience/job:Job"
# The property that holds it: of a job of single nodes, or of its node groups together.
PARTS = ("jobConfigurationDetails", "jobNodeConfigurationDetails")
# No cloud runs a job for longer.
MOST_DAYS = 30


def judge_maximum_runtime(resource: JudgedResource) -> PolicyVerdict:
    if resource.type == RUN:
        return judge_minutes(resource.properties.get("maximumRuntimeMinutes"))
    return verdict_of_either(*(lambda part=part: judge_part(resource, part) for part in PARTS))


def judge_part(resource: JudgedResource, part: str) -> PolicyVerdict:
    details = resource.properties.get(part) or {}
    return judge_minutes(details.get("maximumRuntimeInMinutes"))


def judge_minutes(minutes: object) -> PolicyVerdict:
    number = float(str(minutes)) if minutes else 0.0
    if number <= 0:
        return fail_because("has no maximum runtime, so it may run, and cost, without end")
    if number > MOST_DAYS * 24 * 60:
        return fail_because(f"may run for {number / 60 / 24:,.0f} days; {MOST_DAYS} are the most")
    return PASS


RULE = PolicyRule(
    id="maximum-runtime",
    level="mandatory",
    asks=f"Every job and run has a maximum runtime, of {MOST_DAYS} days at most.",
    remedy="set maximumRuntimeInMinutes (`maximumRuntimeMinutes` of the job in the stack file)",
    types=(JOB, RUN),
    judge=judge_maximum_runtime,
    passes={
        "a job of single nodes": JudgedResource(JOB, {"jobConfigurationDetails": {"maximumRuntimeInMinutes": "1440"}}),
        "a job of node groups": JudgedResource(JOB, {"jobNodeConfigurationDetails": {"maximumRuntimeInMinutes": "60"}}),
        "a run": JudgedResource(RUN, {"maximumRuntimeMinutes": 60.0}),
    },
    fails={
        "not set": JudgedResource(JOB, {"jobConfigurationDetails": {"jobType": "DEFAULT"}}),
        "a run without": JudgedResource(RUN, {"attempt": 1.0}),
        "a run of a hundred years": JudgedResource(RUN, {"maximumRuntimeMinutes": 52_560_000}),
        "none": JudgedResource(JOB, {"jobConfigurationDetails": {"maximumRuntimeInMinutes": "0"}}),
    },
    unknown={"decided elsewhere": JudgedResource(JOB, {"jobConfigurationDetails": Unknown("jobConfigurationDetails")})},
)
