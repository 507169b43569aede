# SPDX-License-Identifier: Apache-2.0
"""Runs on hosts of a local cloud. Each node has a network namespace, and between nodes the rules of the test are in
force."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import oci
import pytest

from components.oci.client import job_runs
from components.oci.client.job_runs import MAIN_VARIABLE, start_of_job_run
from components.oci.rules import security_rules
from components.plan.model import NodePlan
from components.values.security_rules import SecurityRule, port_range_text
from localcloud import admin
from localcloud.environments.find import Environment
from schemas.model import NOTHING, Job
from tests.support.cloud_world import TERMINAL, World
from tests.support.network_world import SERVICES, Network, egress, ingress
from tests.support.oci_plans import oci_plan
from tests.support.samples import stack
from tests.support.waiting import eventually

BUCKET = "runs"
STACK = "field"
# A busy machine of two processors takes a tenth of it for the slowest.
LONGEST_SECONDS = 600.0
_STATEMENTS = [
    "allow dynamic-group nodes to manage object-family in tenancy",
    "allow dynamic-group nodes to read repos in tenancy",
]
# A busy machine must not be taken for a lost node.
_PATIENT = {"TRAINYARD_LOST_SECONDS": "600"}


@dataclass
class Run:
    """The nodes of one run. Each is a job run of its own, as in stacks with the default layout."""

    field: Field
    name: str
    nodes: list[Any]
    documents: tuple[NodePlan, ...]

    def states(self) -> list[str]:
        return [self.field.world.read(node).lifecycle_state for node in self.nodes]

    def finished(self, seconds: float = LONGEST_SECONDS) -> list[str]:
        return eventually(self.states, lambda states: set(states) <= TERMINAL, seconds)

    def succeeds(self) -> Run:
        """Asserts that every node succeeds. If one does not, the error shows what they printed."""
        states = eventually(self.states, lambda found: set(found) <= TERMINAL or "FAILED" in found, LONGEST_SECONDS)
        assert set(states) == {"SUCCEEDED"}, f"{states}\n{self.printed()}\ndropped: {self.dropped()}"
        return self

    def lines(self, rank: int) -> list[str]:
        return self.field.world.lines(self.nodes[rank])

    def printed(self) -> str:
        return "\n".join(line for rank in range(len(self.nodes)) for line in self.lines(rank)[-40:])

    def left(self, name: str) -> dict[str, Any]:
        """The content of an object of the run's output. Exactly one object must match."""
        found = [one for one in self.field.objects(f"{self.folder}/output/") if one.endswith(f"/{name}")]
        assert len(found) == 1, self.field.objects(self.folder)
        read: dict[str, Any] = json.loads(self.field.content(found[0]))
        return read

    def status(self, rank: int) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.field.content(f"{self.folder}/status/{rank}.json"))
        return read

    @property
    def folder(self) -> str:
        return f"train/{self.name}/1/{start_of_job_run(self.nodes[0].id, {})}"

    def addresses(self) -> dict[str, int]:
        """Address -> rank."""
        found = [self.evidence(rank)["nodes"] for rank in range(len(self.nodes))]
        return {nodes[0]["address"]: rank for rank, nodes in enumerate(found) if nodes}

    def evidence(self, rank: int) -> Mapping[str, Any]:
        return self.field.network.evidence(self.nodes[rank])

    def dropped(self) -> set[tuple[int, int, int]]:
        """Connections between nodes that the rules stopped: (from rank, to rank, port)."""
        return set(self._between("dropped"))

    def flowed(self) -> Counter[tuple[int, int, int]]:
        """Connections between nodes that were let in: (from rank, to rank, port) -> their number."""
        return self._between("flows")

    def _between(self, kind: str) -> Counter[tuple[int, int, int]]:
        ranks = self.addresses()
        found: Counter[tuple[int, int, int]] = Counter()
        for rank in range(len(self.nodes)):
            for row in self.evidence(rank)[kind]:
                among = row["from"] in ranks and row["to"] in ranks and row["from"] != row["to"]
                if among and (kind == "dropped" or row["direction"] == "ingress"):
                    pair = (ranks[row["from"]], ranks[row["to"]], row["port"])
                    found[pair] += row.get("connections", 1)
        return found

    def cancel(self) -> None:
        for node in self.nodes:
            try:
                self.field.world.clients.data_science.cancel_job_run(node.id)
            except oci.exceptions.ServiceError as error:
                if error.status != 409:  # it has ended already
                    raise
        self.finished()


@dataclass
class Field:
    """One VCN with a subnet for each run, a bucket, and policies that let nodes work."""

    world: World
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @cached_property
    def network(self) -> Network:
        network = Network(self.world)
        network.route(SERVICES, network.service_gateway())
        identity, models = self.world.clients.identity, oci.identity.models
        place = {"compartment_id": self.world.clients.cloud.tenancy, "name": "nodes", "description": "nodes"}
        rule = "all {resource.type = 'datasciencejobrun'}"
        identity.create_dynamic_group(models.CreateDynamicGroupDetails(**place, matching_rule=rule))
        identity.create_policy(models.CreatePolicyDetails(**place, statements=_STATEMENTS))
        details = oci.object_storage.models.CreateBucketDetails(name=BUCKET, compartment_id=self.world.compartment)
        self.world.clients.storage.create_bucket(self.namespace, details)
        reason = admin.why_not_enforced(self.world.clients.cloud)
        if reason:
            pytest.skip(f"not rehearsed: no rule is enforced here: {reason}")
        return network

    @property
    def namespace(self) -> str:
        return self.world.clients.cloud.namespace

    def objects(self, prefix: str) -> list[str]:
        found = self.world.clients.storage.list_objects(self.namespace, BUCKET, prefix=prefix, limit=1000)
        return [item.name for item in found.data.objects]

    def content(self, name: str) -> bytes:
        return bytes(self.world.clients.storage.get_object(self.namespace, BUCKET, name).data.content)

    @contextmanager
    def run(
        self,
        job: Job,
        code: Path,
        environment: Environment,
        *,
        without: Collection[str] = (),
        only: Callable[[SecurityRule], bool] = lambda rule: True,
        own: Mapping[str, Mapping[str, Any]] = NOTHING,
        **variables: str,
    ) -> Iterator[Run]:
        """Starts a job's nodes under the planned rules, except those for the ports `without`. All processes are ended
        in the end. `own`: the rows of a team's own frameworks."""
        number = next(self._numbers)
        name = f"r{number}"
        planned = oci_plan(stack(jobs={"train": job}), own)
        subnet = self._subnet(number, [rule for rule in security_rules(planned.network).ingress if only(rule)], without)
        documents = planned.jobs["train"].runs["base"].nodes
        image = f"iad.ocir.io/{self.namespace}/frameworks/{environment.name}:1"
        admin.push_image(self.world.clients.cloud, image)
        admin.push_when_repository_exists(self.world.clients.cloud, image, environment.name)
        made = self.job(code, subnet, image)
        run = Run(self, name, [], documents)
        try:
            for node in documents:
                main = {MAIN_VARIABLE: run.nodes[0].id} if run.nodes else {}
                run.nodes.append(self._node(made, node, name, {**main, **variables}))
            yield run
        finally:
            run.cancel()

    def _subnet(self, number: int, rules: list[SecurityRule], without: Collection[str]) -> str:
        cidr = f"10.0.{number}.0/24"
        named = {port_range_text(rule.ports, "all"): rule.ports or (0, 0) for rule in rules}
        told = [ports for name, ports in named.items() if name not in without]
        assert len(told) + len(without) == len(rules), f"{without} are not among {[*named]}"
        return self.network.subnet(
            cidr, [ingress("tcp", cidr, *ports) for ports in told],
            [*(egress("tcp", cidr, *ports) for ports in told), egress("tcp", SERVICES, 443)],
        )  # fmt: skip

    def job(self, code: Path, subnet: str, image: str) -> str:
        """A job whose artifact is the code of a folder. Its image chooses the local environment."""
        models = oci.data_science.models
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as packed:
            for file in sorted(code.rglob("*.py")):
                packed.writestr(str(file.relative_to(code)), file.read_bytes())
        infrastructure = models.StandaloneJobInfrastructureConfigurationDetails(
            shape_name="VM.Standard2.1", block_storage_size_in_gbs=50, subnet_id=subnet
        )
        container = models.OcirContainerJobEnvironmentConfigurationDetails(image=image)
        job = self.world.job(
            job_infrastructure_configuration_details=infrastructure, job_environment_configuration_details=container
        )
        self.world.upload(job, archive.getvalue(), "code.zip")
        return job

    def _node(self, job: str, node: NodePlan, name: str, variables: Mapping[str, str]) -> Any:
        launch = json.dumps(node.launch).replace("${bucket}", f"oci://{BUCKET}@{self.namespace}")
        told = {key: str(value) for key, value in node.environment.items() if "${" not in str(value)}
        told |= {"TRAINYARD_LAUNCH": launch.replace("/base", f"/{name}"), **_PATIENT, **variables}
        configuration = oci.data_science.models.DefaultJobConfigurationDetails(environment_variables=told)
        # The tags that the provider sets. `trainyard runs` finds runs by them.
        tags = {"stack": STACK, "job": "train", "run": name, job_runs.RUN_TAG: name}
        tags[job_runs.NODE_TAG] = f"{node.rank}/{node.role}/{node.name}"
        return self.world.run(
            job, job_configuration_override_details=configuration, display_name=f"{name}-{node.name}",
            freeform_tags=tags,
        )  # fmt: skip
