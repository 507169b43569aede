# SPDX-License-Identifier: Apache-2.0
"""Changes without Pulumi at OCI, with Oracle's own clients, for tests of `trainyard drift`."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import oci

from tests.support.cloud_fixture import Clients
from tests.support.drifting import BehindTheBack, StackUp, Undo, turn

BUCKET = "demo-local-training"
CORE = oci.core.models


class Changes:
    def __init__(self, up: StackUp) -> None:
        self.up, self.clients = up, Clients(up.cloud)
        self.network, self.identity = self.clients.network, self.clients.identity
        self.compartment, self.tenancy = up.cloud.compartment, up.cloud.tenancy

    def makers(self) -> list[Callable[[random.Random], BehindTheBack]]:
        return [
            self.rule_added, self.rule_widened, self.rule_removed, self.second_list, self.way_in,
            self.statement_widened, self.statement_removed, self.statement_added, self.second_policy,
            self.policy_for_all, self.policy_above, self.policy_for_our_runs, self.group_changed, self.bucket_opened,
            self.repository_opened, self.job_changed, self.job_added, self.log_off, self.policy_that_claims,
            self.policy_beyond_the_stack, self.policy_by_name, self.user_in_group, self.objects_expire,
            self.tags_removed, self.security_group, self.bucket_moved,
        ]  # fmt: skip

    def _rules(self, change: Callable[[Any], dict[str, Any]]) -> Undo:
        """Changes the stack's security list. `change` returns the fields to update."""
        identity = self.up.id_of("SecurityList", "rules")
        before = self.network.get_security_list(identity).data
        update = partial(self.network.update_security_list, identity)
        update(CORE.UpdateSecurityListDetails(**change(before)))
        kept = {"ingress_security_rules": before.ingress_security_rules,
                "egress_security_rules": before.egress_security_rules}  # fmt: skip
        return lambda: update(CORE.UpdateSecurityListDetails(**kept))

    def rule_added(self, chance: random.Random) -> BehindTheBack:
        port, source = chance.randrange(1, 65535), chance.choice(["0.0.0.0/0", "192.0.2.0/24", "10.20.0.0/16"])
        rule = CORE.IngressSecurityRule(
            protocol="6", source=source, source_type="CIDR_BLOCK", is_stateless=False,
            tcp_options=CORE.TcpOptions(destination_port_range=CORE.PortRange(min=port, max=port)),
        )  # fmt: skip

        def more(before: Any) -> dict[str, Any]:
            return {"ingress_security_rules": [*before.ingress_security_rules, rule]}

        return BehindTheBack(f"port {port} from {source}", lambda: self._rules(more), [str(port), source])

    def rule_widened(self, chance: random.Random) -> BehindTheBack:
        rule = CORE.EgressSecurityRule(
            protocol=chance.choice(["all", "6", "17"]), destination="0.0.0.0/0", destination_type="CIDR_BLOCK"
        )

        def wide(before: Any) -> dict[str, Any]:
            return {"egress_security_rules": [*before.egress_security_rules, rule]}

        return BehindTheBack("out to everywhere", lambda: self._rules(wide), ["0.0.0.0/0"])

    def rule_removed(self, chance: random.Random) -> BehindTheBack:
        return BehindTheBack(
            "no way to services", lambda: self._rules(lambda _: {"egress_security_rules": []}), ["443"]
        )

    def second_list(self, chance: random.Random) -> BehindTheBack:
        port = chance.randrange(1, 65535)

        def make() -> Undo:
            rule = CORE.IngressSecurityRule(
                protocol="6", source="0.0.0.0/0",
                tcp_options=CORE.TcpOptions(destination_port_range=CORE.PortRange(min=port, max=port)),
            )  # fmt: skip
            vcn, subnet = self.up.id_of("Vcn", "vcn"), self.up.id_of("Subnet", "subnet")
            made = self.network.create_security_list(
                CORE.CreateSecurityListDetails(
                    compartment_id=self.compartment,
                    vcn_id=vcn,
                    display_name="beside",
                    ingress_security_rules=[rule],
                    egress_security_rules=[],
                )
            ).data.id
            before = self.network.get_subnet(subnet).data.security_list_ids

            def update(lists: Any) -> Any:
                return self.network.update_subnet(subnet, CORE.UpdateSubnetDetails(security_list_ids=lists))

            update([*before, made])
            return lambda: (update(before), self.network.delete_security_list(made))

        return BehindTheBack("a second list on the subnet", make, ["beside"])

    def way_in(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            details = CORE.CreateInternetGatewayDetails(
                compartment_id=self.compartment, vcn_id=self.up.id_of("Vcn", "vcn"), is_enabled=True,
                display_name="door",
            )  # fmt: skip
            made = self.network.create_internet_gateway(details).data.id
            return lambda: self.network.delete_internet_gateway(made)

        return BehindTheBack("an internet gateway", make, ["door"])

    def _statements(self, change: Callable[[list[str]], list[str]]) -> Undo:
        identity = self.up.id_of("Policy", "access")
        before = self.identity.get_policy(identity).data.statements

        def update(texts: Any) -> Any:
            return self.identity.update_policy(identity, oci.identity.models.UpdatePolicyDetails(statements=texts))

        return turn(update, change(list(before)), before)

    def statement_widened(self, chance: random.Random) -> BehindTheBack:
        def change(texts: list[str]) -> list[str]:
            place = chance.choice([at for at, text in enumerate(texts) if " where " in text])
            return [*texts[:place], texts[place].partition(" where ")[0], *texts[place + 1 :]]

        return BehindTheBack("a condition less", lambda: self._statements(change), ["gains"])

    def statement_removed(self, chance: random.Random) -> BehindTheBack:
        def change(texts: list[str]) -> list[str]:
            place = chance.randrange(len(texts))
            return [*texts[:place], *texts[place + 1 :]]

        return BehindTheBack("a statement less", lambda: self._statements(change), ["loses"])

    def statement_added(self, chance: random.Random) -> BehindTheBack:
        text = f"Allow group scientists to manage buckets in compartment id {self.compartment}"
        return BehindTheBack("a statement more", lambda: self._statements(lambda texts: [*texts, text]), ["scientists"])

    def _policy(self, place: str, *texts: str) -> Undo:
        details = oci.identity.models.CreatePolicyDetails(
            compartment_id=place, name="beside", description="by hand", statements=list(texts)
        )
        made = self.identity.create_policy(details).data.id
        return lambda: self.identity.delete_policy(made)

    def policy_that_claims(self, chance: random.Random) -> BehindTheBack:
        """Its tags say that another stack made it."""
        text = f"Allow any-user to manage objects in tenancy where target.bucket.name = '{BUCKET}'"

        def make() -> Undo:
            tags = {"managed-by": "trainyard", "stack": "no-such-stack"}
            details = oci.identity.models.CreatePolicyDetails(
                compartment_id=self.tenancy, name="claims", description="x", statements=[text], freeform_tags=tags
            )
            made = self.identity.create_policy(details).data.id
            return lambda: self.identity.delete_policy(made)

        claim = "it says that it is of the stack no-such-stack, which is not known here"
        return BehindTheBack(text, make, ["gains", f"policy claims in the tenancy: {claim}"])

    def policy_beyond_the_stack(self, chance: random.Random) -> BehindTheBack:
        """Rights of its own runs and of its users that are not about its resources."""
        who = chance.choice(["dynamic-group demo-local-runs", "group scientists"])
        what = chance.choice(["read secret-family", "manage users", "manage instance-family"])
        text = f"Allow {who} to {what} in tenancy"
        return BehindTheBack(text, lambda: self._policy(self.tenancy, text), ["gains", "beside"])

    def policy_by_name(self, chance: random.Random) -> BehindTheBack:
        name = self.identity.get_compartment(self.compartment).data.name
        text = f"Allow group others to manage objects in compartment {name}"
        seen = ["gains    group others", "in the stack's compartment", "beside"]
        return BehindTheBack(text, lambda: self._policy(self.tenancy, text), seen)

    def user_in_group(self, chance: random.Random) -> BehindTheBack:
        models = oci.identity.models

        def make() -> Undo:
            (group,) = self.identity.list_groups(self.tenancy, name="scientists").data
            user = models.CreateUserDetails(
                compartment_id=self.tenancy, name="mallory", description="x", email="m@x.org"
            )
            user_id = self.identity.create_user(user).data.id
            details = models.AddUserToGroupDetails(user_id=user_id, group_id=group.id)
            membership = self.identity.add_user_to_group(details).data.id

            def undo() -> None:
                self.identity.remove_user_from_group(membership)
                self.identity.delete_user(user_id)

            return undo

        return BehindTheBack("a user in the stack's group", make, ["user mallory in the group scientists, since 20"])

    def objects_expire(self, chance: random.Random) -> BehindTheBack:
        models, days, place = oci.object_storage.models, chance.randrange(1, 90), (self.up.cloud.namespace, BUCKET)

        def make() -> Undo:
            rule = models.ObjectLifecycleRule(
                name="clean", action="DELETE", time_amount=days, time_unit="DAYS", is_enabled=True
            )
            details = models.PutObjectLifecyclePolicyDetails(items=[rule])
            self.clients.storage.put_object_lifecycle_policy(*place, details)
            return lambda: self.clients.storage.delete_object_lifecycle_policy(*place)

        return BehindTheBack(
            "objects end", make, [f"lifecycle rule clean of the bucket {BUCKET}: DELETE after {days} DAYS"]
        )

    def bucket_moved(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            def update(compartment: Any) -> Any:
                return self.clients.storage.update_bucket(
                    self.up.cloud.namespace,
                    BUCKET,
                    oci.object_storage.models.UpdateBucketDetails(compartment_id=compartment),
                )

            return turn(update, self.tenancy, self.compartment)

        return BehindTheBack("the bucket moves", make, [f"compartmentId: {self.compartment}, now {self.tenancy}"])

    def tags_removed(self, chance: random.Random) -> BehindTheBack:
        vcn = self.up.id_of("Vcn", "vcn")

        def make() -> Undo:
            before = self.network.get_vcn(vcn).data.freeform_tags
            now = {key: value for key, value in before.items() if key != "stack"}

            def update(tags: Any) -> Any:
                return self.network.update_vcn(vcn, CORE.UpdateVcnDetails(freeform_tags=tags))

            return turn(update, now, before)

        return BehindTheBack("a tag less", make, ["freeformTags.stack: local, now nothing"])

    def security_group(self, chance: random.Random) -> BehindTheBack:
        port = chance.randrange(1, 65535)

        def make() -> Undo:
            made = self.network.create_network_security_group(
                CORE.CreateNetworkSecurityGroupDetails(
                    compartment_id=self.compartment, vcn_id=self.up.id_of("Vcn", "vcn"), display_name="open"
                )
            ).data.id
            rule = CORE.AddSecurityRuleDetails(
                direction="INGRESS", protocol="6", source="0.0.0.0/0", source_type="CIDR_BLOCK",
                tcp_options=CORE.TcpOptions(destination_port_range=CORE.PortRange(min=port, max=port)),
            )  # fmt: skip
            rules = CORE.AddNetworkSecurityGroupSecurityRulesDetails(security_rules=[rule])
            self.network.add_network_security_group_security_rules(made, rules)
            return lambda: self.network.delete_network_security_group(made)

        seen = [f"TCP {port} into the security group `open`", "network security group open in the stack's VCN"]
        return BehindTheBack("an open security group", make, seen)

    def second_policy(self, chance: random.Random) -> BehindTheBack:
        who, verb = chance.choice(["others", "auditors"]), chance.choice(["read", "manage"])
        where = chance.choice([f" where target.bucket.name = '{BUCKET}'", " where target.bucket.name = /demo-*/", ""])
        text = f"Allow group {who} to {verb} objects in compartment id {self.compartment}{where}"
        return BehindTheBack(text, lambda: self._policy(self.compartment, text), ["beside"])

    def policy_for_all(self, chance: random.Random) -> BehindTheBack:
        text = f"Allow any-user to read objects in compartment id {self.compartment}"
        return BehindTheBack(text, lambda: self._policy(self.compartment, text), ["beside"])

    def policy_above(self, chance: random.Random) -> BehindTheBack:
        text = (
            f"Allow group others to {chance.choice(['use', 'manage'])} {chance.choice(['repos', 'subnets'])} in tenancy"
        )
        return BehindTheBack(text, lambda: self._policy(self.tenancy, text), ["beside"])

    def policy_for_our_runs(self, chance: random.Random) -> BehindTheBack:
        text = f"Allow dynamic-group demo-local-runs to manage buckets in compartment id {self.compartment}"
        return BehindTheBack(text, lambda: self._policy(self.compartment, text), ["beside"])

    def group_changed(self, chance: random.Random) -> BehindTheBack:
        identity = self.up.id_of("DynamicGroup", "runs")
        rule = chance.choice(["any {resource.type = 'datasciencejobrun'}", "any {instance.compartment.id != 'x'}"])

        def make() -> Undo:
            before = self.identity.get_dynamic_group(identity).data.matching_rule

            def update(text: Any) -> Any:
                return self.identity.update_dynamic_group(
                    identity, oci.identity.models.UpdateDynamicGroupDetails(matching_rule=text)
                )

            return turn(update, rule, before)

        return BehindTheBack(rule, make, ["demo-local-runs"])

    def bucket_opened(self, chance: random.Random) -> BehindTheBack:
        def make() -> Undo:
            def update(access: Any) -> Any:
                return self.clients.storage.update_bucket(
                    self.up.cloud.namespace,
                    BUCKET,
                    oci.object_storage.models.UpdateBucketDetails(public_access_type=access),
                )

            return turn(update, "ObjectRead", "NoPublicAccess")

        return BehindTheBack("the bucket for everybody", make, [BUCKET, "gains"])

    def repository_opened(self, chance: random.Random) -> BehindTheBack:
        identity = self.up.id_of("ContainerRepository", "repository")

        def make() -> Undo:
            def update(public: Any) -> Any:
                return self.clients.artifacts.update_container_repository(
                    identity, oci.artifacts.models.UpdateContainerRepositoryDetails(is_public=public)
                )

            return turn(update, True, False)

        return BehindTheBack("the repository for everybody", make, ["demo/training", "gains"])

    def job_changed(self, chance: random.Random) -> BehindTheBack:
        identity, client = self.up.id_of("Job", "line"), self.clients.data_science
        model = oci.data_science.models

        def make() -> Undo:
            before = client.get_job(identity).data.job_infrastructure_configuration_details
            larger = copy(before)
            larger.block_storage_size_in_gbs += 50

            def update(details: Any) -> Any:
                return client.update_job(
                    identity, model.UpdateJobDetails(job_infrastructure_configuration_details=details)
                )

            return turn(update, larger, before)

        return BehindTheBack("a larger disk", make, ["blockStorageSizeInGbs"])

    def job_added(self, chance: random.Random) -> BehindTheBack:
        client, model = self.clients.data_science, oci.data_science.models

        def make() -> Undo:
            of = client.get_job(self.up.id_of("Job", "line")).data
            details = model.CreateJobDetails(
                project_id=of.project_id, compartment_id=self.compartment, display_name="mine",
                job_configuration_details=of.job_configuration_details,
                job_infrastructure_configuration_details=of.job_infrastructure_configuration_details,
                freeform_tags=of.freeform_tags,
            )  # fmt: skip
            made = client.create_job(details).data.id
            return lambda: client.delete_job(made)

        return BehindTheBack("a job with the stack's tags", make, ["mine"])

    def log_off(self, chance: random.Random) -> BehindTheBack:
        group, log = self.up.id_of("LogGroup", "log-group"), self.up.id_of("Log", "log")

        def make() -> Undo:
            def update(on: Any) -> Any:
                return self.clients.logging.update_log(group, log, oci.logging.models.UpdateLogDetails(is_enabled=on))

            return turn(update, False, True)

        return BehindTheBack("the log off", make, ["isEnabled"])
