# SPDX-License-Identifier: Apache-2.0
"""What a tenancy has of a stack's prerequisites: account, regions, network, buckets, policies, registry, limits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from components.oci.client.live_network import check_subnet
from components.oci.client.missing_access import AccessJudge
from components.oci.client.ocir_login import check_ocir_login, docker_login
from components.oci.client.registry import built_with_ads, has_image_in_ocir, parse_address, repository_command
from components.oci.client.session import Session
from components.oci.client.tenancy_reader import TenancyReader
from components.oci.plan import OciPlan, registry_host
from components.oci.stack import is_ocid
from components.plan.model import JobPlan, expand_references
from components.platform.calls import ProviderError, call_of
from components.platform.prerequisites import Answer, Check, Problem, Question, Remark
from schemas.name_suggestions import count_noun, nearest_name

# OCI refuses a request whose date differs by more.
_CLOCK_SECONDS = 300
_UNSEEN = "Correct the stack file, or let the caller read it: `trainyard access` prints what the deployer needs"


class TenancyChecks:
    def __init__(self, session: Session, question: Question, plan: OciPlan) -> None:
        self._question, self._plan = question, plan
        self._reader = TenancyReader(session)
        self._prefix = f"{plan.team}-{plan.environment}"
        self._network_place = plan.network.compartment or plan.compartment or ""

    def others(self) -> Iterator[Check]:
        plan, access = self._plan, AccessJudge(self._reader, self._plan)
        # Users of a stack need not see what only its deployers look after.
        is_deployer = self._question.acts_as == "deployer"
        if is_deployer:
            yield Check("region", self._check_region)
        if plan.compartment and is_deployer:
            yield Check("compartment", self._check_compartment)
        if "network" not in plan.taken and any(job.joins_subnet for job in plan.jobs.values()):
            yield Check("network", self._check_network)
        if "bucket" not in plan.taken:
            yield Check("bucket", self._check_buckets)
        if "access" not in plan.taken and is_deployer:
            yield Check("runs", access.check_runs)
            yield Check("users", access.check_users)
        yield Check("caller", partial(access.check_caller, self._question.acts_as))
        yield from (Check(what, ask) for what, ask in self._existing())
        if "registry" not in plan.taken:
            yield Check("registry", self._check_registry)
        yield Check("registry login", self._check_login)
        for shape in dict.fromkeys(job.shape.name for job in plan.jobs.values() if not job.compute_target):
            yield Check(f"limit of {shape}", partial(self._check_limit, shape))

    def check_account(self) -> Iterator[Answer]:
        """Whether the tenancy knows the key, by a call that takes no permission; and by its answer the clock."""
        try:
            answer = self._reader.respond(
                "Read the namespace of Object Storage", "object_storage", "get_namespace"
            )  # fmt: skip
        except ProviderError as error:
            refused = error.__cause__
            if getattr(refused, "status", None) != 401:
                raise
            late = list(_check_clock(getattr(refused, "headers", None) or {}))
            yield from late
            if not late:
                yield Problem(
                    f"the tenancy {self._reader.session.tenancy} does not accept the key of the caller",
                    "Upload its public part (Console: your profile, API keys), or correct `user`, `tenancy` and "
                    "`fingerprint` of the profile; --profile takes another one",
                )
            return
        yield from _check_clock(answer.headers)
        tenancy = self._reader.session.tenancy
        if self._plan.tenancy and self._plan.tenancy != tenancy:
            yield Problem(
                f"the stack is for the tenancy {self._plan.tenancy}, and the caller is of {tenancy}",
                "Name a profile of that tenancy with --profile, or correct `trainyard:tenancy`",
            )
        if self._reader.user:
            user = self._reader.read("Read the caller", "identity", "get_user", self._reader.user)
            if user.inactive_status or user.lifecycle_state != "ACTIVE":
                yield Problem(f"the user {user.name} is not active", "Ask an administrator to activate it")

    def _check_region(self) -> Iterator[Answer]:
        what = "List the regions of the tenancy"
        rows = self._reader.read(what, "identity", "list_region_subscriptions", self._reader.session.tenancy)
        ready = {row.region_name for row in rows if row.status == "READY"}
        if self._plan.region not in ready:
            yield Problem(
                f"the tenancy is not subscribed to the region {self._plan.region}",
                f"An administrator subscribes it (Console: Regions), or choose one of {', '.join(sorted(ready))}",
            )
        home = next((row.region_name for row in rows if row.is_home_region), "")
        if self._plan.access.create and self._plan.access.home_region not in (None, home):
            yield Problem(
                f"`homeRegion` is {self._plan.access.home_region}, and the tenancy's is {home}",
                "Correct `access: homeRegion`, or leave it out: policies are made in the home region",
            )

    def _check_compartment(self) -> Iterator[Answer]:
        for ocid in dict.fromkeys((self._plan.compartment or "", self._network_place)):
            if not self._reader.read_if_there(f"Read the compartment {ocid}", "identity", "get_compartment", ocid):
                yield Problem(
                    f"the compartment {ocid} is not in the tenancy {self._reader.session.tenancy}, or the caller may "
                    "not see it", "Correct it in the stack file, or name a profile of its tenancy with --profile",
                )  # fmt: skip

    def _check_network(self) -> Iterator[Answer]:
        network, place = self._plan.network, self._network_place
        for text, kind in ((network.vcn, "vcn"), (network.route_table, "route table")):
            if text:
                _, problems = self._find_named(kind, "core", text, place)
                yield from problems
        if network.create:
            own = f"{self._prefix}-nodes"
            found = self._reader.rows("List the subnets", "core", "list_subnets", place, display_name=own)
            subnet = found[0] if found else None
        else:
            subnet, problems = self._find_named("subnet", "core", network.subnet or "", place)
            yield from problems
        if subnet is not None:
            yield from check_subnet(self._reader, self._plan, subnet)

    def _find_named(self, kind: str, client: str, text: str, *place: str) -> tuple[Any, list[Problem]]:
        """The existing resource that the stack file names, by OCID or by name."""
        words, noun = kind.upper() if kind == "vcn" else kind, kind.replace(" ", "_")
        if is_ocid(text):
            within = place if kind == "log" else ()
            found = self._reader.read_if_there(f"Read the {words}", client, f"get_{noun}", *within, text)
            missing = f"the {words} {text} does not exist, or the caller may not see it"
            return found, [] if found is not None else [Problem(missing, _UNSEEN)]
        rows = self._reader.rows(f"List every {words}", client, f"list_{noun}s", *place)
        same = [row for row in rows if row.display_name == text]
        if len(same) == 1:
            return same[0], []
        if same:
            ocids = ", ".join(sorted(row.id for row in same))
            return None, [Problem(f"{len(same)} {words}s are called `{text}`: {ocids}", "Give the OCID of one")]
        close = nearest_name(text, [row.display_name for row in rows])
        near = f"Did you mean `{close}`? " if close else ""
        return None, [Problem(f"no {words} in {place[0]} is called `{text}`", f"{near}{_UNSEEN}")]

    def _existing(self) -> Iterator[tuple[str, Any]]:
        """What the stack file names, beside what other checks look at."""
        plan, place = self._plan, self._plan.compartment or ""

        def check_one(kind: str, text: str, *within: str) -> Iterator[Problem]:
            return iter(self._find_named(kind, "logging" if "log" in kind else "data_science", text, *within)[1])

        if plan.project.project:
            yield "project", partial(check_one, "project", plan.project.project, place)
        for key, target in plan.compute_targets.items():
            if target.existing:
                yield f"compute target {key}", partial(check_one, "compute target", target.existing, place)
        if plan.logs.group:
            yield "logs", partial(self._check_logs, plan.logs.group, plan.logs.log)

    def _check_logs(self, group: str, log: str | None) -> Iterator[Problem]:
        found, problems = self._find_named("log group", "logging", group, self._plan.compartment or "")
        if found is not None and log:
            problems = self._find_named("log", "logging", log, found.id)[1]
        yield from problems

    def _check_buckets(self) -> Iterator[Answer]:
        plan = self._plan
        named = [] if plan.bucket.create else [(plan.bucket.name, "the stack's bucket")]
        for job in plan.jobs.values():
            inputs = sorted({one.bucket for one in job.inputs if one.bucket and one.bucket != plan.bucket.name})
            named += [(bucket, f"input of {job.name}") for bucket in inputs]
        for name, role in named:
            what = f"Ask for the bucket {name}"
            if not self._reader.read_if_there(what, "object_storage", "get_bucket", self._reader.namespace, name):
                yield Problem(
                    f"the bucket {name} ({role}) does not exist in {self._reader.namespace}, or the caller may not see "
                    "it",
                    f"`oci os bucket create --name {name} --compartment-id {plan.compartment}` makes it, or correct "
                    "the stack file",
                )  # fmt: skip

    def _check_registry(self) -> Iterator[Answer]:
        registry, place = self._plan.registry, self._plan.compartment or ""
        if not registry.create and "/" not in registry.repository.partition("/")[0]:
            tree: list[tuple[str, dict[str, bool]]] = [(place, {}), (self._reader.session.tenancy, _IN_SUBTREE)]
            found = any(
                self._reader.rows(
                    "List the repositories", "artifacts", "list_container_repositories", where,
                    display_name=registry.repository, **depth,
                )
                for where, depth in tree
            )  # fmt: skip
            if not found:
                make = f"oci artifacts container repository create --display-name {registry.repository}"
                yield Problem(
                    f"there is no repository {registry.repository} in the registry, or the caller may not see it",
                    f"`{make} --compartment-id {place}` makes it, or correct the stack file",
                )
                return
        if self._question.where.cloud is not None:
            return  # environments of this machine stand in for images
        names = {"namespace": self._reader.namespace}
        names["registry"] = f"{registry_host(self._plan.region)}/{self._reader.namespace}/{registry.repository}"
        call = call_of("doctor", self._question.where.tell)
        for address in dict.fromkeys(expand_references(job.image, names) for job in self._plan.jobs.values()):
            image = parse_address(address)
            if image is None or image.namespace != self._reader.namespace:
                continue
            if not has_image_in_ocir(self._reader.session, call, image, place, 0):
                jobs = [job for job in self._plan.jobs.values() if expand_references(job.image, names) == address]
                yield Problem(f"the image {address} is not in the registry", self._image_remedy(jobs))

    def _image_remedy(self, jobs: list[Any]) -> str:
        if any(map(built_with_ads, jobs)):
            return "`ads opctl distributed-training build-image` and `publish-image` make and push it"
        stack = self._plan.stack
        build = f"trainyard image build {stack}; trainyard image push {stack}"
        return f"{repository_command(self._plan)}; {build}" if self._plan.registry.create else build

    def _check_login(self) -> Iterator[Answer]:
        host = registry_host(self._plan.region)
        endpoint = self._question.registry(host)
        login = docker_login(self._question.environment, endpoint.host) or docker_login(
            self._question.environment, host
        )  # fmt: skip
        by_ads = any(map(built_with_ads, self._plan.jobs.values()))
        yield from check_ocir_login(self._reader, endpoint, login, is_needed=by_ads)

    def _check_limit(self, shape: str) -> Iterator[Answer]:
        jobs: list[JobPlan] = [job for job in self._plan.jobs.values() if job.shape.name == shape]
        nodes = max(job.nodes for job in jobs)
        limit = f"ds-{shape.lower().replace('.', '-')}-count"
        try:
            found = self._reader.read(
                f"Read the limit {limit}", "limits", "get_resource_availability", "data-science", limit,
                self._plan.compartment or self._reader.session.tenancy,
            )  # fmt: skip
        except ProviderError as error:
            if getattr(error.__cause__, "status", None) != 404:
                raise
            unknown = f"the limit of {shape} is not known by the name {limit}, or the caller may not read it"
            yield Remark(f"{unknown}: see Console, Governance, Limits")
            return
        if found.available is not None and found.available < nodes:
            yield Problem(
                f"a run needs {count_noun(nodes, 'machine')} of {shape}; the limit {limit} leaves {found.available}",
                "Ask for a higher limit (Console: Governance, Limits), end other runs, or take another shape",
            )


_IN_SUBTREE = {"compartment_id_in_subtree": True}


def _check_clock(headers: Any) -> Iterator[Problem]:
    try:
        theirs = parsedate_to_datetime(str(headers.get("date")))
    except ValueError:
        return
    difference = (datetime.now(UTC) - theirs).total_seconds()
    if abs(difference) > _CLOCK_SECONDS:
        way = "ahead" if difference > 0 else "behind"
        yield Problem(
            f"the clock of this machine is {abs(difference) / 60:.0f} minutes {way}, and OCI refuses more than 5",
            "sudo timedatectl set-ntp true",
        )
