# SPDX-License-Identifier: Apache-2.0
"""The prerequisites of a stack on OpenPAI (`trainyard doctor`): token, virtual cluster and its size, storages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from components.openpai.client.cluster_calls import ask_cluster, if_exists
from components.openpai.client.cluster_errors import ApiError
from components.openpai.client.cluster_session import TOKEN_VARIABLE, openpai_session_of_caller
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan, openpai_plan
from components.plan.model import Plan
from components.platform.calls import ProviderError, call_of
from components.platform.prerequisites import Answer, Check, CloudChecks, Prerequisites, Problem, Question, Remark
from schemas.name_suggestions import count_noun, quoted_list

_NEW_TOKEN = f"Make one in the web portal (your profile, Tokens), and set {TOKEN_VARIABLE}"
# OpenPAI's default for one user, which a cluster may change.
_SUBMISSIONS_AN_HOUR = 60
_HOUR = 3600.0


class OpenPaiPrerequisites(Prerequisites):
    def local_checks(self, question: Question) -> Iterable[Check]:
        """Nothing: a token comes from a variable, or from the stack file."""
        return ()

    def cloud_checks(self, question: Question, plan: Plan) -> CloudChecks:
        asked = _ClusterChecks(question, openpai_plan(plan))
        return CloudChecks(Check("account", asked.check_account), tuple(asked.others()))


class _ClusterChecks:
    def __init__(self, question: Question, plan: OpenPaiPlan) -> None:
        self._plan = plan
        self._session = openpai_session_of_caller(question.where)
        self._call = replace(call_of("doctor", question.where.tell), patience=0.0)

    def others(self) -> Iterator[Check]:
        yield Check("virtual cluster", self._check_virtual_cluster)
        for job in self._plan.jobs.values():
            yield Check(f"size of {job.name}", partial(self._check_size, job))
        if self._plan.store.storage is not None:
            yield Check("storage", partial(self._check_storage, self._plan.store.storage.name))
        yield Check("submissions", self._check_submissions)

    def _read(self, what: str, path: str, **query: str) -> Any:
        return ask_cluster(self._session, self._call, what, path, **query)

    def check_account(self) -> Iterator[Answer]:
        if not self._session.token:
            yield Problem(f"there is no token for {self._session.uri or 'the cluster'}", _NEW_TOKEN)
            return
        try:
            caller = self._read("Check the token", "tokens/check")
        except ProviderError as error:
            if not isinstance(error.__cause__, ApiError) or error.__cause__.status != 401:
                raise
            source = self._session.token_from
            yield Problem(
                f"{self._session.uri} does not accept the token ({source}): it expired or was revoked", _NEW_TOKEN
            )
            return
        info = self._read("Read the version of the cluster", "info")
        if info.get("launcherType") != "k8s":
            yield Problem(
                f"{self._session.uri} is OpenPAI {info.get('version')}, whose jobs do not run on Kubernetes",
                "Stacks need OpenPAI 1.0 or later: ask the cluster's administrator",
            )
        if caller.get("username") != self._plan.cluster.user:
            yield Problem(
                f"the token is that of the user {caller.get('username')}, and the stack's jobs are those of "
                f"{self._plan.cluster.user}",
                f"Correct `cluster: user`, or set {TOKEN_VARIABLE} to a token of that user",
            )

    def _check_virtual_cluster(self) -> Iterator[Answer]:
        name, user = self._plan.cluster.virtual_cluster, self._plan.cluster.user
        allowed = self._read("Read the user", f"users/{quote(user, safe='')}").get("virtualCluster") or []
        if name not in allowed:
            yield Problem(
                f"the user {user} may not use the virtual cluster `{name}`",
                f"Name one of {quoted_list(allowed)} in `cluster: virtualCluster`, or ask the cluster's administrator",
            )

    def _check_size(self, job: OpenPaiJobPlan) -> Iterator[Answer]:
        """Whether all tasks fit into the whole virtual cluster: otherwise they would wait for ever."""
        name = self._plan.cluster.virtual_cluster
        path = f"virtual-clusters/{quote(name, safe='')}"
        found = if_exists(lambda: self._read(f"Read the virtual cluster {name}", path))
        total = (found or {}).get("resourcesTotal")
        if not isinstance(total, dict):
            return
        tasks = [(role.replicas, job.task_roles[role.name].sku) for role in job.roles]
        needs = {
            "GPUs": sum(count * sku.gpus for count, sku in tasks),
            "vCores": sum(count * sku.cpus for count, sku in tasks),
            "memory": sum(count * sku.memory_mb for count, sku in tasks),
        }
        lacking = [key for key, need in needs.items() if need > float(total.get(key, need))]
        if lacking:
            words = ", ".join(f"{needs[key]} of {total[key]} {key}" for key in lacking)
            yield Problem(
                f"{job.name} needs more than the virtual cluster `{name}` has: {words}",
                "Give it fewer nodes, or a smaller row of `trainyard:skus`, or name another virtual cluster",
            )

    def _check_storage(self, name: str) -> Iterator[Answer]:
        rows = self._read("List the storages", "storages").get("storages") or []
        names = [str(row.get("name")) for row in rows]
        if name not in names:
            others = f"one of {quoted_list(names)}" if names else "one that you may use"
            yield Problem(
                f"there is no storage `{name}` that the caller may use", f"Name {others} in `trainyard:storage`"
            )

    def _check_submissions(self) -> Iterator[Answer]:
        """OpenPAI counts the jobs that a user submits in an hour, and does not tell its limit."""
        user = self._plan.cluster.user
        rows = self._read("List the jobs of the user", "jobs", username=user, limit=str(_SUBMISSIONS_AN_HOUR + 1))
        since = (time.time() - _HOUR) * 1000
        recent = sum(float(row.get("submissionTime") or 0) > since for row in rows if isinstance(row, dict))
        runs = sum(len(job.runs) for job in self._plan.jobs.values())
        if recent + runs > _SUBMISSIONS_AN_HOUR:
            yield Remark(
                f"{user} submitted {count_noun(recent, 'job')} within the last hour, and this stack has "
                f"{count_noun(runs, 'run')}: clusters usually take {_SUBMISSIONS_AN_HOUR} an hour"
            )


PREREQUISITES = OpenPaiPrerequisites()
