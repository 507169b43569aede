# SPDX-License-Identifier: Apache-2.0
"""Resources that tests of the local cloud need: a network, a log, a job that runs a script."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import oci
import pytest

from tests.support.cloud_fixture import Clients
from tests.support.waiting import LONGEST_SECONDS, eventually

TERMINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELED", "NEEDS_ATTENTION"})


@dataclass(frozen=True)
class World:
    """Resources made on first use, through the official SDK."""

    clients: Clients

    @property
    def compartment(self) -> str:
        return self.clients.cloud.compartment

    @cached_property
    def project(self) -> str:
        details = oci.data_science.models.CreateProjectDetails(compartment_id=self.compartment, display_name="project")
        return str(self.clients.data_science.create_project(details).data.id)

    @cached_property
    def vcn(self) -> Any:
        details = oci.core.models.CreateVcnDetails(compartment_id=self.compartment, cidr_blocks=["10.0.0.0/16"])
        return self.clients.network.create_vcn(details).data

    @cached_property
    def log_group(self) -> str:
        details = oci.logging.models.CreateLogGroupDetails(compartment_id=self.compartment, display_name="runs")
        return self.made(self.clients.logging.create_log_group(details))

    @cached_property
    def log(self) -> str:
        details = oci.logging.models.CreateLogDetails(display_name="runs", log_type="CUSTOM")
        runs_may_log(self.clients)
        return self.made(self.clients.logging.create_log(self.log_group, details))

    def made(self, response: Any) -> str:
        """The resource that a logging call made, by its work request."""
        request = self.clients.logging.get_work_request(response.headers["opc-work-request-id"]).data
        assert request.status == "SUCCEEDED"
        return str(request.resources[0].identifier)

    def job(self, script: str | None = None, name: str = "train.py", **more: Any) -> str:
        """A job that logs; with a script it has an artifact."""
        models = oci.data_science.models
        variables = more.pop("variables", {})
        details = models.CreateJobDetails(
            **{
                "compartment_id": self.compartment,
                "project_id": self.project,
                "display_name": "job",
                "job_configuration_details": models.DefaultJobConfigurationDetails(environment_variables=variables),
                "job_infrastructure_configuration_details": (
                    models.ManagedEgressStandaloneJobInfrastructureConfigurationDetails(
                        shape_name="VM.Standard2.1", block_storage_size_in_gbs=50
                    )
                ),
                "job_log_configuration_details": models.JobLogConfigurationDetails(
                    enable_logging=True, log_group_id=self.log_group, log_id=self.log
                ),
                **more,
            }
        )
        job = self.clients.data_science.create_job(details).data.id
        if script is not None:
            self.upload(job, script.encode(), name)
        return str(job)

    def upload(self, job: str, content: bytes, name: str) -> None:
        disposition = f"attachment; filename={name}"
        self.clients.data_science.create_job_artifact(job, content, content_disposition=disposition)

    def run(self, job: str, **more: Any) -> Any:
        details = oci.data_science.models.CreateJobRunDetails(
            compartment_id=self.compartment, project_id=self.project, job_id=job, **more
        )
        return self.clients.data_science.create_job_run(details).data

    def home(self, run: Any, rank: int = 0) -> Path:
        """A node's home folder on this machine, once it exists. A test may put files into it."""
        folder: Path = self.clients.cloud.home / "runs" / run.id / f"node-{rank}"
        eventually(folder.exists, bool)
        return folder

    def read(self, run: Any) -> Any:
        return self.clients.data_science.get_job_run(run.id).data

    def finished(self, run: Any, seconds: float = LONGEST_SECONDS) -> Any:
        return eventually(lambda: self.read(run), lambda found: found.lifecycle_state in TERMINAL, seconds)

    def lines(self, run: Any) -> list[str]:
        """What the run printed, read from the logging service."""
        found = self.read(run).log_details
        now = datetime.now(UTC)
        details = oci.loggingsearch.models.SearchLogsDetails(
            time_start=now - timedelta(hours=1),
            time_end=now + timedelta(hours=1),
            search_query=(
                f'search "{self.compartment}/{found.log_group_id}/{found.log_id}"'
                f" | where source = '*{run.id}' | sort by datetime asc"
            ),
        )
        results = self.clients.log_search.search_logs(details, limit=1000).data.results
        return [result.data["logContent"]["data"]["message"] for result in results]

    def printed(self, run: Any, text: str) -> None:
        eventually(lambda: self.lines(run), lambda lines: any(text in line for line in lines))


def variables(**values: str) -> Mapping[str, Any]:
    """Overrides of a run's environment."""
    models = oci.data_science.models
    overrides = models.DefaultJobConfigurationDetails(environment_variables=values)
    return {"job_configuration_override_details": overrides}


def runs_may_log(clients: Clients) -> None:
    """The policies without which runs of a tenancy cannot write logs."""
    identity, models = clients.identity, oci.identity.models
    place = {"compartment_id": clients.cloud.tenancy, "name": "runs-that-log", "description": "log"}
    rule = "all {resource.type = 'datasciencejobrun'}"
    statements = ["allow dynamic-group runs-that-log to use log-content in tenancy"]
    try:
        identity.create_dynamic_group(models.CreateDynamicGroupDetails(**place, matching_rule=rule))
        identity.create_policy(models.CreatePolicyDetails(**place, statements=statements))
    except oci.exceptions.ServiceError as error:
        if error.code != "NotAuthorizedOrResourceAlreadyExists":  # another `World` has made it already
            raise


def refusal(call: Callable[[], Any]) -> tuple[int, str]:
    """The status and code with which the cloud refuses this call."""
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        call()
    return refused.value.status, refused.value.code
