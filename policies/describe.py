# SPDX-License-Identifier: Apache-2.0
"""`python -m policies.describe > docs/policies.md`: the list of rules, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterator

from policies.rule import Rule, rules

HEAD = """\
# Policies

Written by `python -m policies.describe > docs/policies.md`; edit the rules under `policies/rules/` instead.

A [CrossGuard](https://www.pulumi.com/docs/iac/crossguard/) pack that judges the properties of each resource before it
is made, whoever wrote the program. It knows nothing of stack files and plans.

    pulumi preview --policy-pack policies

A rule says pass, fail or unknown. A *mandatory* failure stops the deployment, an *advisory* one is a remark. Unknown is
never a pass: `preview` remarks on it under `not-known-yet`, and `up` asks again once the value is there. Levels change
without touching the rules: `--policy-pack-config FILE` with `{"unversioned-bucket": "mandatory"}`.

What is opened wider than usual on purpose says so in a freeform tag, which people and auditors see in the console.
trainyard's components set it by the stack file; the rule still judges whether the reason holds.

- `all-tcp` on a security list: the frameworks that need it, as `horovod` (the catalog has to agree that they pick ports
  by themselves), or `proof-of-concept`.
- `tenancy-wide` on a policy: `chosen` where the stack has `access: { scope: tenancy }`; `proof-of-concept` allows
  `all-resources` too.
"""


def document() -> str:
    return "\n".join([HEAD, *_list(), *(line for rule in rules() for line in _rule(rule))])


def _list() -> Iterator[str]:
    yield "| rule | level | what it asks |"
    yield "| --- | --- | --- |"
    for rule in rules():
        yield f"| [{rule.id}](#{rule.id}) | {rule.level} | {rule.asks} |"
    yield ""


def _rule(rule: Rule) -> Iterator[str]:
    yield f"## {rule.id}"
    yield ""
    yield f"{rule.asks} Remedy: {rule.remedy}."
    yield ""
    yield f"Asked of {', '.join(f'`{kind}`' for kind in rule.types)}."
    yield ""
    for title, examples in (("Passes", rule.passes), ("Fails", rule.fails), ("Unknown", rule.unknown)):
        yield f"- {title}: {'; '.join(examples)}"
    yield ""


if __name__ == "__main__":
    print(document(), end="")
