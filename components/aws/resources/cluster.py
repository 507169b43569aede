# SPDX-License-Identifier: Apache-2.0
"""The machines of a job: placement group, launch template, one instance for each node, and the secrets that they
read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from catalog.reason_tags import PUBLIC_ADDRESS
from components.aws.machines import MachineImage, MachinePlace, encode_user_data, launch_template, template_name
from components.aws.node_setup import NodeSettings, node_accelerator, user_data
from components.aws.plan import AwsJobPlan, ClusterPlan
from components.aws.resources.access import KeyPair, keep_secret
from components.aws.resources.context import AwsComponent, Context, resource_tags
from components.aws.run_inputs import aws_run_inputs, run_secret_name, secret_variables
from components.plan.model import RunPlan
from components.runs import Run, RunProvider, old_run_names


@dataclass(frozen=True)
class ClusterArgs:
    """`launcher`, `code`: names of objects. `after`: resources that must exist before a machine starts."""

    job: AwsJobPlan
    context: Context
    place: MachinePlace
    image: MachineImage
    launcher: str
    code: str | None
    provider: RunProvider
    after: Sequence[pulumi.Resource]


class Cluster(AwsComponent):
    """Instances are keyed by the names of their nodes, so removing one does not affect the others."""

    instances: Mapping[str, Any]
    # The name is known before any resource exists.
    template_name: str
    address: pulumi.Output[str] | None = None

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Cluster", name, {**args.context.plan.tags, "job": args.job.cluster.key}, opts)
        self._args, self._cluster = args, args.job.cluster
        self.template_name = launch_template_name(self._cluster, args.context.plan.region, args.image)
        secret = self._ssh_key()
        group = self._placement_group()
        launch = self._template()
        after = [*args.after, secret, *([group] if group else [])]
        self.instances = {node: self._instance(node, rank, launch, after) for rank, node in enumerate(self._nodes)}
        if self._cluster.public_address == "elastic":
            self.address = self._elastic_address()
        self.register_outputs({node: instance.id for node, instance in self.instances.items()})

    @property
    def _nodes(self) -> tuple[str, ...]:
        return self._cluster.nodes

    def _ssh_key(self) -> pulumi.Resource:
        name = f"{self._args.job.name}/ssh"
        keys = pulumi.ResourceOptions(parent=self, provider=self._args.provider)
        pair = KeyPair(name, self._cluster.key_rotation, keys)
        why = f"The SSH key by which nodes of {self._cluster.name} enter each other"
        _, version = keep_secret(name, ssh_secret(self._cluster), why, pair.private, self._tags, self._inside)
        return version

    def _placement_group(self) -> pulumi.Resource | None:
        if not self._cluster.make_placement_group:
            return None
        named = {"name": self._cluster.name, "strategy": "cluster"}
        return self._make(aws.ec2.PlacementGroup, self._args.job.name, **named)

    def _template(self) -> Any:
        args, cluster = self._args, self._cluster
        settings = _lasting_settings(cluster, args.context.plan.region)
        # Existing machines get newer launchers with their tickets.
        renewed: dict[str, Any] = {
            "launcher": args.launcher,
            # It follows from the instance type, so a corrected row must not replace machines.
            "accelerator": node_accelerator(cluster.instance_type),
        }
        log_group = pulumi.Output.from_input(args.context.log_group)
        # The bucket and the log group may belong to another stack, whose outputs have their names.
        named = pulumi.Output.all(
            bucket=args.context.bucket, log_group=log_group, image=args.context.fill(args.job.image)
        )
        data = named.apply(lambda names: encode_user_data(user_data(NodeSettings(**settings, **renewed, **names))))
        inputs = launch_template(cluster, args.image, args.place, data, self._tags)
        inputs |= {"name": self.template_name, "description": f"Machines of {cluster.name}"}
        tags = resource_tags(self._tags, cluster.name) | self._chosen("automatic")
        again = self._replaced_with_place(args.context.bucket, log_group)
        return self._make(aws.ec2.LaunchTemplate, args.job.name, again, tags=tags, **inputs)

    def _replaced_with_place(self, *names: pulumi.Output[str | None]) -> pulumi.ResourceOptions:
        """Options that replace the template when network, profile or names change, which cannot change on an existing
        machine.

        These settings are not in the template's name, because earlier releases did not include them. Machines start
        from version 1 of the template, so a new version would not move them to another subnet.
        """
        place = pulumi.ResourceOptions(
            replace_on_changes=["networkInterfaces", "iamInstanceProfile"],
            # The names are in the user data, but each release changes the user data, so a trigger is used. If a state
            # has no trigger yet, the engine adds it and replaces nothing.
            replacement_trigger=list(names),
            # The new template has the same name. The machines are deleted before it, and all of them before the subnet.
            delete_before_replace=True,
        )
        return pulumi.ResourceOptions.merge(self._inside, place)

    def _instance(self, node: str, rank: int, launch: Any, after: Sequence[pulumi.Resource]) -> Any:
        named = {"node": node, "rank": str(rank)}
        tags = resource_tags({**self._tags, **named}, f"{self._cluster.name}-{node}")
        # Another template replaces the machine, another version of it does not.
        template = {"id": launch.id, "version": "1"}
        # The account's quota rarely allows two of them, and two nodes must not have the same name.
        alone = pulumi.ResourceOptions(parent=self, depends_on=after, delete_before_replace=True)
        name = f"{self._args.job.name}/{node}"
        return self._make(aws.ec2.Instance, name, alone, launch_template=template, tags=tags)

    def _chosen(self, how: str) -> dict[str, str]:
        """The tag which shows that the stack file requests this public address."""
        return {PUBLIC_ADDRESS: "chosen"} if self._cluster.public_address == how else {}

    def _elastic_address(self) -> pulumi.Output[str]:
        """An address for the first node. With several interfaces, AWS has to be told which one gets it."""
        name = self._args.job.name
        tags = resource_tags(self._tags, self._cluster.name) | self._chosen("elastic")
        address = self._make(aws.ec2.Eip, name, domain="vpc", tags=tags)
        interface = self.instances[self._nodes[0]].primary_network_interface_id
        ends = {"allocation_id": address.id, "network_interface_id": interface}
        aws.ec2.EipAssociation(name, opts=self._inside, **ends)
        return address.public_ip


def ssh_secret(cluster: ClusterPlan) -> str:
    return f"{cluster.name}/ssh"


def launch_template_name(cluster: ClusterPlan, region: str, image: MachineImage) -> str:
    """The template's name. Another name replaces every machine of the cluster."""
    return template_name(cluster, image, _lasting_settings(cluster, region))


def _lasting_settings(cluster: ClusterPlan, region: str) -> dict[str, Any]:
    """The settings of a machine that cannot change as long as it exists."""
    return {
        "region": region,
        "job": cluster.key,
        "ssh_secret": ssh_secret(cluster),
        "ssh_port": cluster.ssh_port,
        "release": cluster.release,
        "host_nic": cluster.host_nic,
        "efa_interfaces": cluster.efa,
        "stop_when_idle_minutes": cluster.stop_when_idle_minutes,
    }


class Job(pulumi.ComponentResource):
    """One job with its machines and runs. Runs are keyed by name, so removing one does not affect the others."""

    cluster: Cluster
    runs: Mapping[str, Run]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # A renamed job keeps its state. Pulumi applies the alias to the resources below it too.
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=old_run_names(args.job.was)))
        super().__init__("trainyard:aws-dl1:Job", name, None, opts)
        self._args = args
        self.cluster = Cluster(name, args, pulumi.ResourceOptions(parent=self))
        self.runs = {key: self._run(key, run) for key, run in args.job.runs.items()}
        self.register_outputs({})

    def _run(self, key: str, run: RunPlan) -> Run:
        args = self._args
        after: list[pulumi.Resource] = [*args.after, *self.cluster.instances.values()]
        secret: dict[str, Any] = {}
        named = f"{args.job.name}/{key}"
        before = [f"{args.job.name}/{name}" for name in run.was]
        if variables := secret_variables(run):
            why = f"Secret variables of {run.display_name}"
            tags = {**args.context.plan.tags, "job": args.job.cluster.key}
            inside = pulumi.ResourceOptions(parent=self, aliases=old_run_names(before))
            name, version = keep_secret(named, run_secret_name(args.job, run), why, variables, tags, inside)
            after.append(version)
            # The name never changes. A new value is a new version, which starts the run again.
            secret = {"secret": name, "secretVersion": version.version_id}
        options = pulumi.ResourceOptions(
            parent=self,
            provider=args.provider,
            depends_on=after,
            # The provider asks for this order too, but the engine does not consult it for --replace.
            delete_before_replace=True,
            aliases=old_run_names(before),
        )
        return Run(named, self._inputs(run, secret), options)

    def _inputs(self, run: RunPlan, secret: Mapping[str, Any]) -> dict[str, Any]:
        args = self._args
        where = {"bucket": args.context.bucket, "logGroup": args.context.log_group, "code": args.code, **secret}
        return aws_run_inputs(args.context.plan, args.job, run, where, args.context)
