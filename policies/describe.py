# SPDX-License-Identifier: Apache-2.0
"""`python -m policies.describe > docs/policies.md`: the list of rules, from the rules themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import fill

from policies.rule import PolicyRule, StackRule, all_rules

WIDTH = 119
_CODE = re.compile(r"`[^`]+`")
_SPACE = "\N{NO-BREAK SPACE}"
HEAD = """\
# Policies

Written by `python -m policies.describe > docs/policies.md`; edit the rules under `policies/rules/` instead.

This [CrossGuard](https://www.pulumi.com/docs/iac/crossguard/) pack judges resources before they are made, whichever
program made the request. Most rules judge the properties of one resource; some judge all resources of a stack together.
It knows nothing of stack files and plans, except three keys of the stack's configuration: the environment, the mode of
the access, and waivers.

    pulumi preview --policy-pack policies

A rule answers pass, fail or unknown. A *mandatory* failure stops the deployment; an *advisory* failure is a remark.
Unknown is never a pass: `preview` remarks on it under `not-known-yet`, and `up` asks again once the value is there.
What another stack made, such as a registry under `uses`, may never be there: then the remark stays.
`trainyard review` gives the same verdicts from recorded resources, without the engine (`policies/offline.py`).
`preview` judges a whole stack before anything is made. `up` does so at its end, and in the preview that it begins with.

## Levels, ceilings and environments

You change levels without touching the rules: `--policy-pack-config FILE` with `{"unversioned-bucket": "mandatory"}`.
`all` stands for every rule that the file does not name. Any rule takes an object instead of a level:

    {
      "all-tcp": {"levels": {"dev": "advisory", "*": "mandatory"}},
      "public-bucket": {"waivable": false},
      "budget": {
        "enforcementLevel": "mandatory",
        "ceilings": {"dev": {"nodes": 4, "gpus": 8, "usd": 200}, "*": {"nodes": 32}},
        "stackCeilings": {"dev": {"nodes": 16}, "*": {}},
        "prices": {"BM.GPU.H100.8": 61.5}
      }
    }

- `enforcementLevel` is the rule's level everywhere, `levels` that by environment. `*` stands for those not named, and
  the level `disabled` turns a rule off.
- `waivable: false`: no stack may waive the rule.
- A misspelt rule: Pulumi's engine passes on the settings of the pack's rules only, so the pack never sees another
  name, and the setting has no effect. `trainyard review --policy-config FILE` refuses such a file, also where no stack
  changed: run it in the pull request.
- Other settings of a rule are listed with the rule. The environment is `trainyard:environment`; for programs without
  that key, the tag `environment` of the resources.

## Waivers

A stack that breaks a rule on purpose says so in its file, with a reason and the last day:

    config:
      trainyard:waivers:
        unversioned-bucket: { reason: scratch data of one experiment, until: "2026-12-31" }

Until then each failure of that rule is a remark that names the waiver, whatever the rule's level. From the next day on
the rule holds again, and its failure says that the waiver ended. `trainyard check` refuses a waiver of an unknown rule
(TY720) or without a reason, and warns of one that has ended (TY722); `plan` and `review` show waivers.

## Reasons in tags

A resource that is opened wider than usual on purpose says so in a tag (a freeform tag on OCI), which people and
auditors see in the console. trainyard's components set the tag from the modes and choices of the stack file, whose own
`trainyard:tags` may not contain one (TY612): it would be a reason for everything in the stack. The rule still judges
whether the reason holds.

- `all-tcp` on a security list names the frameworks that need it, such as `horovod` (the catalog has to agree that they
  choose ports by themselves), or `proof-of-concept`. A security group that opens everything to itself needs no tag:
  EFA's traffic has no ports.
- `launch` on a job without runs says what a run would say: `nodes=4 ports=29400,29500-29563`.
- `open-port` on a rule of AWS is `chosen` where the stack lets people in, or `endpoints` of AWS's services.
- `opened-for` on a security list names frameworks whose jobs are in other stacks (`trainyard:network: { frameworks }`).
- `public-address` on a resource of AWS with a public address is `chosen` where the stack asks for one, or `nat`.
- `tenancy-wide` on a policy is `chosen` where the stack has `access: { scope: tenancy }`. With `proof-of-concept` the
  policy may grant `all-resources` too, and the stack's dynamic groups may match in every compartment.
- `wildcard-policies` on a policy of AWS is `proof-of-concept` where it may allow everything.

## Rules
"""


def rules_page() -> str:
    lines = [HEAD, "| rule | level | what it demands |", "| --- | --- | --- |"]
    lines += [f"| [{rule.id}](#{rule.id}) | {rule.level} | {rule.asks} |" for rule in all_rules()]
    return "\n".join([*lines, "", *(line for rule in all_rules() for line in _rule_section(rule))])


def _rule_section(rule: PolicyRule | StackRule) -> Iterator[str]:
    yield f"## {rule.id}"
    yield ""
    yield _wrap_paragraph(f"{rule.asks} Remedy: {rule.remedy}.")
    yield ""
    judges = "It judges whole stacks, by their" if isinstance(rule, StackRule) else "It judges"
    yield _wrap_paragraph(f"{judges} {', '.join(f'`{kind}`' for kind in rule.types)}.")
    yield ""
    if isinstance(rule, StackRule):
        for name, schema in rule.settings.items():
            yield _wrap_paragraph(f"- Setting `{name}`: {schema['description']}", "  ")
    for title, examples in (("Passes", rule.passes), ("Fails", rule.fails), ("Unknown", rule.unknown)):
        if examples:
            yield _wrap_paragraph(f"- {title}: {'; '.join(examples)}", "  ")
    yield ""


def _wrap_paragraph(paragraph: str, indent: str = "") -> str:
    """Lines of the page's width. Text in backticks stays on one line."""
    whole = _CODE.sub(lambda code: code[0].replace(" ", _SPACE), paragraph)
    lines = fill(whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace(_SPACE, " ")


if __name__ == "__main__":
    print(rules_page(), end="")
