# SPDX-License-Identifier: Apache-2.0
"""`python -m policies.describe > docs/policies.md`: the list of rules, from the rules themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import fill

from policies.rule import PolicyRule, rules

WIDTH = 119
_CODE = re.compile(r"`[^`]+`")
_SPACE = "\N{NO-BREAK SPACE}"
HEAD = """\
# Policies

Written by `python -m policies.describe > docs/policies.md`; edit the rules under `policies/rules/` instead.

This [CrossGuard](https://www.pulumi.com/docs/iac/crossguard/) pack judges the properties of each resource before it
is made, whichever program made the request. It knows nothing of stack files and plans.

    pulumi preview --policy-pack policies

A rule answers pass, fail or unknown. A *mandatory* failure stops the deployment; an *advisory* failure is a remark.
Unknown is never a pass: `preview` remarks on it under `not-known-yet`, and `up` asks again once the value is there.
You can change levels without touching the rules: `--policy-pack-config FILE` with
`{"unversioned-bucket": "mandatory"}`.

A resource that is opened wider than usual on purpose says so in a tag (a freeform tag on OCI), which people and
auditors see in the console. trainyard's components set the tag from the stack file. The rule still judges whether the
reason holds.

- `all-tcp` on a security list names the frameworks that need it, such as `horovod` (the catalog has to agree that they
  choose ports by themselves), or `proof-of-concept`. A security group that opens everything to itself needs no tag:
  EFA's traffic has no ports.
- `public-address` on what has a public address on AWS is `chosen` where the stack asks for one, or `nat`.
- `tenancy-wide` on a policy is `chosen` where the stack has `access: { scope: tenancy }`. With `proof-of-concept` the
  policy may grant `all-resources` too.
- `wildcard-policies` on a policy of AWS is `proof-of-concept` where everything is meant.
"""


def document() -> str:
    return "\n".join([HEAD, *_list(), *(line for rule in rules() for line in _rule(rule))])


def _list() -> Iterator[str]:
    yield "| rule | level | what it demands |"
    yield "| --- | --- | --- |"
    for rule in rules():
        yield f"| [{rule.id}](#{rule.id}) | {rule.level} | {rule.asks} |"
    yield ""


def _rule(rule: PolicyRule) -> Iterator[str]:
    yield f"## {rule.id}"
    yield ""
    yield _wrapped(f"{rule.asks} Remedy: {rule.remedy}.")
    yield ""
    yield _wrapped(f"It judges {', '.join(f'`{kind}`' for kind in rule.types)}.")
    yield ""
    for title, examples in (("Passes", rule.passes), ("Fails", rule.fails), ("Unknown", rule.unknown)):
        yield _wrapped(f"- {title}: {'; '.join(examples)}", "  ")
    yield ""


def _wrapped(paragraph: str, indent: str = "") -> str:
    """Lines of the page's width; what is in backticks stays on one line."""
    whole = _CODE.sub(lambda code: code[0].replace(" ", _SPACE), paragraph)
    lines = fill(whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace(_SPACE, " ")


if __name__ == "__main__":
    print(document(), end="")
