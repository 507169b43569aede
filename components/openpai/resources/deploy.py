# SPDX-License-Identifier: Apache-2.0
"""Makes a plan's runs, which are jobs of OpenPAI. A stack makes no other resources there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulumi

from components.messages import RefusedError
from components.openpai.job import protocol_of, protocol_to_check
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan
from components.openpai.protocol import protocol_problems
from components.openpai.run_inputs import RunFiles, openpai_run_inputs, read_files
from components.plan.platform import Deployment
from components.runs import Run, RunProvider, old_run_names, warn_of_links
from schemas.findings import Wrong, at


def deploy_openpai(plan: OpenPaiPlan, folder: Path) -> dict[str, Any]:
    """Makes every resource of the plan and returns the stack's outputs. Paths in the plan start at `folder`."""
    files = {name: _read_job_files(plan, job, folder) for name, job in plan.jobs.items()}
    wrongs = []
    # All jobs are checked first: OpenPAI would refuse a wrong one only when others train already.
    for name, job in plan.jobs.items():
        too_large = "keep the code in git or in the image" if job.code else "correct the job"
        for key, run in job.runs.items():
            for problem in protocol_problems(protocol_to_check(protocol_of(plan, job, run, files[name].code), run)):
                message = f"the job breaks OpenPAI's protocol: {problem}"
                remedy = too_large if problem.is_size else "correct the job"
                wrongs.append(Wrong(at("jobs", name, "runs", key), message, remedy))
    if wrongs:
        raise RefusedError(wrongs)
    provider = RunProvider("runs", {}) if plan.jobs else None
    jobs = {name: Job(name, plan, job, files[name], provider) for name, job in plan.jobs.items()}
    return {
        "cluster": plan.cluster.uri,
        "user": plan.cluster.user,
        "virtualCluster": plan.cluster.virtual_cluster,
        "bucketUri": plan.store.uri,
        **({"imagePushAddress": plan.registry_address} if plan.registry_address else {}),
        # The stack makes nothing but its runs.
        "made": [],
        "jobs": {
            name: {"runs": {key: {"state": run.state, "nodes": run.node_runs} for key, run in job.runs.items()}}
            for name, job in jobs.items()
        },
        "console": {"jobs": f"{plan.cluster.uri}/job-list.html"},
    }


class Job(pulumi.ComponentResource):
    """The runs of one job. They are keyed by name, so removing one does not affect the others."""

    runs: Mapping[str, Run]

    def __init__(
        self,
        name: str,
        plan: OpenPaiPlan,
        job: OpenPaiJobPlan,
        files: RunFiles,
        provider: RunProvider | None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        # A renamed job keeps its state. Pulumi applies the alias to the resources below it too.
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=old_run_names(job.was)))
        super().__init__("trainyard:openpai:Job", name, None, opts)
        self.runs = {
            key: Run(
                f"{name}/{key}",
                openpai_run_inputs(plan, job, run, files, pulumi.Output.secret),
                pulumi.ResourceOptions(
                    parent=self,
                    provider=provider,
                    # The provider asks for this order too, but the engine does not consult it for --replace.
                    delete_before_replace=True,
                    aliases=old_run_names(tuple(f"{name}/{was}" for was in run.was)),
                ),
            )
            for key, run in job.runs.items()
        }
        self.register_outputs({})


def _read_job_files(plan: OpenPaiPlan, job: OpenPaiJobPlan, folder: Path) -> RunFiles:
    if job.code and job.code.folder:
        warn_of_links(job.name, (folder / job.code.folder).resolve())
    try:
        return read_files(plan, job, folder)
    except (OSError, UnicodeError) as problem:
        message = f"the code or the certificate cannot be read: {problem}"
        raise RefusedError([Wrong(at("jobs", job.name), message, "correct the path, or the file")]) from None


DEPLOYMENT = Deployment(deploy_openpai)
