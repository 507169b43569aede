# SPDX-License-Identifier: Apache-2.0
"""A job whose runs a test starts through our provider. Plugins make the resources that the job needs."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.oci.client.session import Session
from components.platform.values import Properties
from localcloud import control
from provider.base.resource import Plugin
from tests.support.provider_client import EngineSide, Resource, engine_side

_PROGRAM = """
import os, pathlib, sys, time
print("node", sys.argv[1:], os.environ.get("MAIN_JOB_RUN_OCID", "is main"), os.environ.get("TOKEN", ""), flush=True)
time.sleep(float(os.environ.get("SECONDS_TO_RUN", "0")))
while "ENDS_WHEN_TOLD" in os.environ and not (pathlib.Path.home() / "ends").exists():
    time.sleep(0.02)
print(os.environ.get("SAYS", ""), flush=True)
print("done", flush=True)
sys.exit(int(os.environ.get("EXIT_CODE", "0")))
"""


@dataclass(frozen=True)
class World:
    cloud: control.Cloud
    engine: EngineSide
    oci: EngineSide
    project: Resource
    job: Resource
    log_group: Resource
    log: Resource
    session: Session

    def inputs(self, **more: Any) -> Properties:
        return {
            "platform": "oci",
            "job": self.job.id,
            "project": self.project.id,
            "compartment": self.cloud.compartment,
            "displayName": "run",
            "tags": {"team": "vision"},
            "nodes": [node("main", 0)],
            "logGroup": self.log_group.id,
            "log": self.log.id,
            "until": "finished",
            "timeouts": {"access": 0.05, "started": 10, "finished": 10},
            **more,
        }

    def runs(self) -> list[Any]:
        listed = self.session.client("data_science").list_job_runs(self.cloud.compartment, job_id=self.job.id).data
        return [run for run in listed if run.lifecycle_state != "DELETED"]


def node(name: str, rank: int, role: str = "main", **environment: Any) -> Properties:
    return {"name": name, "role": role, "rank": rank, "environment": environment, "arguments": ["--rank", str(rank)]}


def configured(stack: ExitStack, plugin: Plugin) -> EngineSide:
    engine = stack.enter_context(engine_side(plugin))
    engine.configure()
    return engine


def placed(cloud: control.Cloud, **more: Any) -> Properties:
    return {"compartmentId": cloud.compartment, **more}


def job_inputs(cloud: control.Cloud, project: str, folder: Path, **more: Any) -> Properties:
    return placed(
        cloud,
        projectId=project,
        displayName="job",
        deleteRelatedJobRuns=True,
        jobConfigurationDetails={"jobType": "DEFAULT", "maximumRuntimeInMinutes": "5"},
        **small_machine(folder, _PROGRAM),
        **more,
    )


def small_machine(folder: Path, program: str) -> Properties:
    """The inputs of a job for a small shape."""
    artifact = folder / "train.py"
    artifact.write_text(program)
    return {
        "jobInfrastructureConfigurationDetails": {
            "jobInfrastructureType": "ME_STANDALONE",
            "shapeName": "VM.Standard2.1",
            "blockStorageSizeInGbs": 50,
        },
        "jobArtifact": str(artifact),
        "artifactContentLength": str(artifact.stat().st_size),
        "artifactContentDisposition": "attachment; filename=train.py",
    }
