# SPDX-License-Identifier: Apache-2.0
"""Dynamic groups and policies. They are made in the home region, the groups before the policies that name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_oci as oci

from components.oci.plan import OciPlan
from components.oci.resources.context import look_up_in_oci, provider_credentials
from components.oci.statements import lines_by_policy, matching_rule, policy_tags

DYNAMIC_GROUP_SCHEMA = "urn:ietf:params:scim:schemas:oracle:idcs:DynamicResourceGroup"


@dataclass(frozen=True)
class AccessArgs:
    plan: OciPlan
    prefix: str
    tags: Mapping[str, str]


class Access(pulumi.ComponentResource):
    """Dynamic groups and policies. Resources that need the access depend on this component. The access may take effect
    some minutes later."""

    def __init__(self, name: str, args: AccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:oci:Access", name, None, opts)
        self._args = args
        self._inside = pulumi.ResourceOptions(parent=self, provider=self._home())
        groups = self._groups()
        self._policies(groups)
        self.register_outputs({})

    def _home(self) -> oci.Provider | None:
        """The provider for the home region: OCI changes groups and policies only there.

        None if that is the stack's own region, because another provider is another process.
        """
        plan = self._args.plan
        region = plan.access.home_region
        if not region:
            # Looked up immediately, because the response decides which resources are made.
            answer = look_up_in_oci("Identity", "getRegionSubscriptions", tenancyId=plan.tenancy or "")
            region = str(next(row["regionName"] for row in answer["regionSubscriptions"] if row["isHomeRegion"]))
        if region == plan.region:
            return None
        settings = {
            "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key): value
            for key, value in provider_credentials().items()
        }
        return oci.Provider("home", region=region, **settings, opts=pulumi.ResourceOptions(parent=self))

    def _groups(self) -> list[pulumi.Resource]:
        access = self._args.plan.access
        wanted = []
        if access.make_runs_group:
            wanted.append(self._group("runs", access.runs_group, "Job runs of distributed training"))
        if access.make_notebooks_group and access.users_dynamic_group:
            wanted.append(self._group("notebooks", access.users_dynamic_group, "Notebook sessions that start training"))
        return wanted

    def _group(self, what: str, named: str, description: str) -> pulumi.Resource:
        plan, rule = self._args.plan, matching_rule(self._args.plan, what)
        if plan.access.domain_endpoint:
            return oci.identity.DomainsDynamicResourceGroup(
                what,
                idcs_endpoint=plan.access.domain_endpoint,
                schemas=[DYNAMIC_GROUP_SCHEMA],
                display_name=named,
                description=description,
                matching_rule=rule,
                opts=self._inside,
            )
        return oci.identity.DynamicGroup(
            what,
            compartment_id=plan.tenancy,
            name=named,
            description=description,
            matching_rule=rule,
            freeform_tags=dict(self._args.tags),
            opts=self._inside,
        )

    def _policies(self, groups: list[pulumi.Resource]) -> None:
        plan = self._args.plan
        for key, lines in lines_by_policy(plan).items():
            oci.identity.Policy(
                key,
                compartment_id=plan.tenancy if lines[0].attached_to_tenancy else plan.compartment,
                name=f"{self._args.prefix}-{key}",
                description=f"Distributed training of {self._args.prefix}: {plan.access.mode}",
                statements=[line.text for line in lines],
                freeform_tags={**self._args.tags, **policy_tags(plan, lines)},
                # The name must be free before a policy can replace another one of the same name.
                opts=pulumi.ResourceOptions.merge(
                    self._inside, pulumi.ResourceOptions(depends_on=groups, delete_before_replace=True)
                ),
            )
