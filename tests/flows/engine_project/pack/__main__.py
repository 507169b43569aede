# SPDX-License-Identifier: Apache-2.0
"""One mandatory rule: no shouting."""

from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)


def no_shouting(args: ResourceValidationArgs, report: ReportViolation) -> None:
    if args.resource_type == "notes:index:Note" and args.props["text"].isupper():
        report("shouting in a note")


PolicyPack(
    "manners",
    [
        ResourceValidationPolicy(
            name="no-shouting",
            description="Notes are written in a calm voice.",
            enforcement_level=EnforcementLevel.MANDATORY,
            validate=no_shouting,
        )
    ],
)
