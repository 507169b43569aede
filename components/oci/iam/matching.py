# SPDX-License-Identifier: Apache-2.0
"""Matching rules of dynamic groups: which resources are members."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from components.oci.iam.evaluate import compile_condition
from components.oci.iam.parse import read_condition, read_operator, read_value
from components.oci.iam.printing import condition_text
from components.oci.iam.scanner import Scanner
from components.oci.iam.statement import Comparison, Condition, Exists, Text

__all__ = ["MatchableResource", "condition_text", "matches_rule", "parse_rule"]

RULE_VARIABLES = (
    "instance.id",
    "instance.compartment.id",
    "resource.id",
    "resource.type",
    "resource.compartment.id",
    "tag.<namespace>.<key>.value",
)
_TAG = re.compile(r"tag\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.value", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MatchableResource:
    """The properties of a resource that a matching rule can use. Tags are defined tags: `namespace.key` to value."""

    ocid: str
    compartment: str
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The kind of resource, as OCIDs name it: `datasciencejobrun`."""
        parts = self.ocid.split(".")
        return parts[1] if len(parts) > 1 else ""

    def variables(self) -> dict[str, str]:
        """The values of the rule's variables for this resource."""
        variables = {"resource.id": self.ocid, "resource.type": self.type, "resource.compartment.id": self.compartment}
        if self.type == "instance":
            variables |= {"instance.id": self.ocid, "instance.compartment.id": self.compartment}
        return variables | {f"tag.{name}.value".lower(): value for name, value in self.tags.items()}


def _read_rule_comparison(scanner: Scanner) -> Condition:
    position, variable = scanner.position, scanner.word()
    tag = _TAG.fullmatch(variable)
    if not tag and variable.lower() not in RULE_VARIABLES:
        raise scanner.expected(f"`all`, `any` or one of {', '.join(RULE_VARIABLES)}", ("all", "any", *RULE_VARIABLES))
    scanner.take_word()
    if tag and (scanner.at_end() or scanner.peek(",") or scanner.peek("}")):
        return Exists(variable)
    operator = read_operator(scanner, ("=", "!="))
    value_at = scanner.position
    value = read_value(scanner)
    if not isinstance(value, Text):
        raise scanner.wrong("matching rules take quoted values only, no patterns and no variables", value_at)
    return scanner.built(position, lambda: Comparison(variable, operator, (value,)))


def parse_rule(text: str) -> Condition:
    """The rule. Raises `StatementError` if OCI would refuse it."""
    scanner = Scanner(text)
    rule = read_condition(scanner, _read_rule_comparison)
    if scanner.word().lower() in ("all", "any"):
        raise scanner.wrong("a dynamic group has one rule; put several together as any {…, …}")
    if not scanner.at_end():
        raise scanner.expected("the end")
    return rule


def matches_rule(rule: Condition, resource: MatchableResource) -> bool:
    """Whether the resource is a member of a dynamic group with this rule."""
    return compile_condition(rule)(resource.variables())
