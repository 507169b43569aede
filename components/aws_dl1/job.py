# SPDX-License-Identifier: Apache-2.0
"""A job: its cluster, and the runs that queue for it. Another argument starts a run and touches no machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.aws_dl1.cluster import Cluster, ClusterArgs
from components.aws_dl1.run_inputs import run_inputs
from components.aws_dl1.secrets import keep_secret, secret_variables
from components.plan.model import RunPlan
from components.run import Run, aliases


class Job(pulumi.ComponentResource):
    """One job with its machines and runs. Runs are keyed by name, so removing one does not affect the others."""

    cluster: Cluster
    runs: Mapping[str, Run]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # A renamed job keeps its state. Pulumi applies the alias to the resources below it too.
        opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(aliases=aliases(args.job.was)))
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
            inside = pulumi.ResourceOptions(parent=self, aliases=aliases(before))
            # The name that a run keeps when it is renamed. No run's secret is called as the cluster's own key.
            called = f"{args.job.cluster.name}/runs/{run.was[0] if run.was else key}"
            name, version = keep_secret(named, called, why, variables, tags, inside)
            after.append(version)
            # Its name stays. Another value is another version, and starts the run again.
            secret = {"secret": name, "secretVersion": version.version_id}
        options = pulumi.ResourceOptions(
            parent=self,
            provider=args.provider,
            depends_on=after,
            # The provider asks for this order too, but the engine does not consult it for --replace.
            delete_before_replace=True,
            aliases=aliases(before),
        )
        return Run(named, self._inputs(run, secret), options)

    def _inputs(self, run: RunPlan, secret: Mapping[str, Any]) -> dict[str, Any]:
        args = self._args
        where = {
            "bucket": args.context.bucket,
            "logGroup": args.context.log_group,
            "code": args.code,
            **secret,
        }
        return run_inputs(args.context.plan, args.job, run, where, args.context)
