# SPDX-License-Identifier: Apache-2.0
"""A rule or a statement, taken away for a while: from the security list, from the policy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module

from components.oci.client.session import DEPLOYER, session_of
from components.oci.local.grounds import canonical
from components.platform.evidence import RuleMutation, StatementMutation
from components.platform.local_cloud import LocalCloud


def without(cloud: LocalCloud, mutation: RuleMutation | StatementMutation) -> AbstractContextManager[None]:
    if isinstance(mutation, RuleMutation):
        return _without_rule(cloud, mutation)
    return _without_statement(cloud, mutation)


@contextmanager
def _without_rule(cloud: LocalCloud, mutation: RuleMutation) -> Iterator[None]:
    network, models = session_of(cloud, DEPLOYER).client("core"), import_module("oci.core.models")
    rule = mutation.before
    field = f"{rule.direction}_security_rules"
    whole = getattr(network.get_security_list(rule.list).data, field)
    rest = [one for index, one in enumerate(whole) if index != rule.index]
    network.update_security_list(rule.list, models.UpdateSecurityListDetails(**{field: rest}))
    try:
        yield
    finally:
        network.update_security_list(rule.list, models.UpdateSecurityListDetails(**{field: whole}))


@contextmanager
def _without_statement(cloud: LocalCloud, mutation: StatementMutation) -> Iterator[None]:
    identity, models = session_of(cloud, DEPLOYER).client("identity"), import_module("oci.identity.models")
    places = (cloud.tenancy, cloud.compartment)
    (policy,) = (one for place in places for one in identity.list_policies(place, name=mutation.policy).data)
    rest = [text for text in policy.statements if canonical(text) != mutation.before]
    # A policy is never empty: this one grants what nobody here asks for.
    kept = rest or ["Allow group Administrators to inspect tag-namespaces in tenancy"]
    identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=kept))
    try:
        yield
    finally:
        identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=policy.statements))
