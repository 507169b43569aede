# SPDX-License-Identifier: Apache-2.0
"""What Oracle's guide tells an administrator to prepare, made with Oracle's own clients for a stack that makes nothing
of it, and ways to break each part."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import oci
import yaml
from click.testing import CliRunner

from localcloud import admin
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.local_team import SHIPPED
from trainyard.cli.main import main

CORE, IDENTITY = oci.core.models, oci.identity.models
Undo = Callable[[], object]
_TCP = "6"
# Of the sample: PyTorch's rendezvous, its data connections, and the services.
_INSIDE = "10.0.0.0/24"


@dataclass(frozen=True)
class Breakage:
    """`seen`: what the single problem has to say."""

    title: str
    make: Callable[[], Undo]
    seen: tuple[str, ...]


@dataclass
class Prepared:
    """A tenancy that was prepared, and the stack file of a team that uses it. `ids`: those of its parts."""

    cloud: Cloud
    home: Path
    ids: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clients = Clients(self.cloud)
        self.world = World(self.clients)
        self.place = {"compartment_id": self.cloud.compartment}
        self.file = self.home / "Pulumi.risk-prod.yaml"
        (self.home / "Pulumi.yaml").write_text("name: risk\nruntime: python\n")
        self._prepare_network()
        self._prepare_storage()

    def _prepare_network(self) -> None:
        network, vcn = self.clients.network, {**self.place, "vcn_id": self.world.vcn.id}
        services = network.list_services().data[0]
        gateway = network.create_service_gateway(
            CORE.CreateServiceGatewayDetails(**vcn, services=[CORE.ServiceIdRequestDetails(service_id=services.id)])
        ).data
        self.route = CORE.RouteRule(
            destination=services.cidr_block, destination_type="SERVICE_CIDR_BLOCK", network_entity_id=gateway.id
        )
        routes = network.create_route_table(CORE.CreateRouteTableDetails(**vcn, route_rules=[self.route])).data
        self.inward = CORE.IngressSecurityRule(protocol=_TCP, source=_INSIDE)
        self.outward = [
            CORE.EgressSecurityRule(protocol=_TCP, destination=_INSIDE),
            CORE.EgressSecurityRule(
                protocol=_TCP, destination=services.cidr_block, destination_type="SERVICE_CIDR_BLOCK",
                tcp_options=CORE.TcpOptions(destination_port_range=CORE.PortRange(min=443, max=443)),
            ),
        ]  # fmt: skip
        rules = network.create_security_list(
            CORE.CreateSecurityListDetails(
                **vcn, ingress_security_rules=[self.inward], egress_security_rules=self.outward
            )
        ).data
        subnet = network.create_subnet(
            CORE.CreateSubnetDetails(
                **vcn, cidr_block=_INSIDE, display_name="risk", prohibit_public_ip_on_vnic=True,
                route_table_id=routes.id, security_list_ids=[rules.id],
            )
        ).data  # fmt: skip
        self.ids |= {"gateway": gateway.id, "routes": routes.id, "rules": rules.id, "subnet": subnet.id}

    def _prepare_storage(self) -> None:
        self.make_bucket()
        artifacts, models = self.clients.artifacts, oci.artifacts.models
        details = models.CreateContainerRepositoryDetails(**self.place, display_name="risk/images")
        self.ids["repository"] = artifacts.create_container_repository(details).data.id
        self.image = f"iad.ocir.io/{self.cloud.namespace}/risk/images:3.2"
        self.push_image()
        self.ids["log group"], self.ids["log"] = self.world.log_group, self.world.log

    def make_bucket(self) -> None:
        details = oci.object_storage.models.CreateBucketDetails(**self.place, name="risk-models")
        self.clients.storage.create_bucket(self.cloud.namespace, details)

    def push_image(self) -> None:
        admin.push_image(self.cloud, self.image)

    def write_stack(self, **changes: Any) -> Mapping[str, Any]:
        config = yaml.safe_load((SHIPPED / "Pulumi.oci-existing.yaml").read_text())["config"]
        config["trainyard:network"] = {"subnet": self.ids["subnet"]}
        config["trainyard:logs"] = {"existing": {"group": self.ids["log group"], "log": self.ids["log"]}}
        config["trainyard:project"] = {"existing": self.world.project}
        config["trainyard:access"] = {"existing": True, "users": {"group": "risk-people"}, "runs": "risk-job-runs"}
        config["trainyard:jobs"]["scores"].pop("code")
        config |= {f"trainyard:{key}": value for key, value in changes.items()}
        self.file.write_text(yaml.safe_dump({"config": config}, sort_keys=False))
        return dict(config)

    def grant_access(self, statements: list[str]) -> None:
        """The group and dynamic group, and a policy with these statements, as an administrator makes them."""
        self.statements, identity = statements, self.clients.identity
        named = {"compartment_id": self.cloud.tenancy, "description": "as the guide says"}
        place = self.cloud.compartment
        self.rule = f"all {{resource.type = 'datasciencejobrun', resource.compartment.id = '{place}'}}"
        group = IDENTITY.CreateDynamicGroupDetails(**named, name="risk-job-runs", matching_rule=self.rule)
        self.ids["dynamic group"] = identity.create_dynamic_group(group).data.id
        self.make_people()
        policy = IDENTITY.CreatePolicyDetails(**named, name="risk", statements=statements)
        self.ids["policy"] = identity.create_policy(policy).data.id

    def grant_printed_access(self) -> None:
        """The statements that `trainyard access` prints for whoever makes them."""
        printed = CliRunner().invoke(main, ["access", str(self.file), "--format", "json"]).stdout
        policies = json.loads(printed)["wanted"]
        self.grant_access([right["statement"] for policy in policies for right in policy["rights"]])

    def make_deployers(self, group: str) -> list[str]:
        """A group with the local user in it. Returns the statements that `trainyard access` prints for deployers."""
        identity, named = self.clients.identity, {"compartment_id": self.cloud.tenancy, "name": group}
        details = IDENTITY.CreateGroupDetails(**named, description="run `up`")
        user = oci.config.from_file(str(self.cloud.config_file), "user")["user"]
        membership = IDENTITY.AddUserToGroupDetails(user_id=user, group_id=identity.create_group(details).data.id)
        identity.add_user_to_group(membership)
        words = ["access", str(self.file), "--deployers", group, "--format", "json"]
        printed = json.loads(CliRunner().invoke(main, words).stdout)["deployer"]
        statements = [right["statement"] for right in printed["rights"]]
        policy = IDENTITY.CreatePolicyDetails(**named, description="printed", statements=statements)
        self.ids["deployers"] = identity.create_policy(policy).data.id
        return statements

    def update_deployers(self, statements: list[str]) -> None:
        details = IDENTITY.UpdatePolicyDetails(statements=statements)
        self.clients.identity.update_policy(self.ids["deployers"], details)

    def make_people(self) -> None:
        details = IDENTITY.CreateGroupDetails(
            compartment_id=self.cloud.tenancy, name="risk-people", description="start runs"
        )
        self.ids["people"] = self.clients.identity.create_group(details).data.id

    def log_in(self, user: str = "") -> None:
        """Writes docker's login, as `docker login` does."""
        named = user or f"{self.cloud.namespace}/deployer"
        login = base64.b64encode(f"{named}:{self.token}".encode()).decode()
        host = self.cloud.endpoint.removeprefix("http://")
        file = self.home / ".docker" / "config.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"auths": {host: {"auth": login}}}))

    def make_token(self) -> None:
        user = oci.config.from_file(str(self.cloud.config_file), "deployer")["user"]
        details = IDENTITY.CreateAuthTokenDetails(description="docker")
        made = self.clients.identity.create_auth_token(details, user).data
        self.ids["user"], self.ids["token"], self.token = user, made.id, made.token
        self.log_in()

    # Ways to break it.

    def without_rules(self, inward: bool) -> Undo:
        update = partial(self.clients.network.update_security_list, self.ids["rules"])
        rules = {"ingress_security_rules": [] if inward else [self.inward],
                 "egress_security_rules": self.outward if inward else self.outward[:1]}  # fmt: skip
        update(CORE.UpdateSecurityListDetails(**rules))
        whole = {"ingress_security_rules": [self.inward], "egress_security_rules": self.outward}
        return lambda: update(CORE.UpdateSecurityListDetails(**whole))

    def without_route(self) -> Undo:
        update = partial(self.clients.network.update_route_table, self.ids["routes"])
        update(CORE.UpdateRouteTableDetails(route_rules=[]))
        return lambda: update(CORE.UpdateRouteTableDetails(route_rules=[self.route]))

    def with_closed_gateway(self) -> Undo:
        update = partial(self.clients.network.update_service_gateway, self.ids["gateway"])
        update(CORE.UpdateServiceGatewayDetails(block_traffic=True))
        return lambda: update(CORE.UpdateServiceGatewayDetails(block_traffic=False))

    def without_bucket(self) -> Undo:
        self.clients.storage.delete_bucket(self.cloud.namespace, "risk-models")
        return self.make_bucket

    def without_statement(self, at: int) -> Undo:
        update = partial(self.clients.identity.update_policy, self.ids["policy"])
        left = [text for text in self.statements if text != self.statements[at]]
        update(IDENTITY.UpdatePolicyDetails(statements=left))
        return lambda: update(IDENTITY.UpdatePolicyDetails(statements=self.statements))

    def with_other_rule(self) -> Undo:
        update = partial(self.clients.identity.update_dynamic_group, self.ids["dynamic group"])
        update(IDENTITY.UpdateDynamicGroupDetails(matching_rule="all {resource.type = 'datasciencenotebooksession'}"))
        return lambda: update(IDENTITY.UpdateDynamicGroupDetails(matching_rule=self.rule))

    def without_people(self) -> Undo:
        self.clients.identity.delete_group(self.ids["people"])
        return self.make_people

    def without_image(self) -> Undo:
        artifacts = self.clients.artifacts
        for image in artifacts.list_container_images(self.cloud.compartment).data.items:
            artifacts.delete_container_image(image.id)
        return self.push_image

    def without_token(self) -> Undo:
        self.clients.identity.delete_auth_token(self.ids["user"], self.ids["token"])
        return self.make_token

    def with_login(self, user: str) -> Undo:
        self.log_in(user)
        return self.log_in

    def with_limit(self) -> Undo:
        admin.add_fault(self.cloud, "limit", limit="ds-vm-gpu-a10-1-count", value=1)
        return lambda: admin.clear_faults(self.cloud)

    def with_stack(self, **changes: Any) -> Undo:
        self.write_stack(**changes)
        return self.write_stack

    def with_mode(self, file: Path, mode: int) -> Undo:
        before = file.stat().st_mode & 0o777
        file.chmod(mode)
        return lambda: file.chmod(before)
