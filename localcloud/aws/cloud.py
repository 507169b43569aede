# SPDX-License-Identifier: Apache-2.0
"""The local AWS as one of the cloud's APIs. It handles signatures and faults on the event loop, and calls on a
thread."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from localcloud.aws import account, kept, metadata, sigv4
from localcloud.aws.access.decisions import AwsRecord
from localcloud.aws.additions import commands, machine_view
from localcloud.aws.additions.outside import Outside
from localcloud.aws.aws_errors import Reason, RefusalError, reply_to
from localcloud.aws.calls import read_raw_call
from localcloud.aws.machines import Machine, Machines, SecurityGroupRules, SubnetFacts
from localcloud.aws.moto_state import moto_backend
from localcloud.aws.services import SERVICES, AwsService, Wire
from localcloud.server import faults
from localcloud.server.api_errors import ApiError
from localcloud.server.http import MAXIMUM_BODY, Body, Reply, Request, plain_refusal

if TYPE_CHECKING:
    from localcloud.aws.simulation import Simulation

# moto takes the content of an object at once. Clients upload larger files in parts.
MAXIMUM_OBJECT = 512 * 1024 * 1024
_REASONS = {429: Reason.THROTTLED, 503: Reason.UNAVAILABLE}
_LOOP_SECONDS = 60.0
_ONLY_AWS = ("x-amz-target", "x-amz-date", "x-amz-content-sha256", "amz-sdk-invocation-id")
Answer = TypeVar("Answer")
log = logging.getLogger("localcloud")


class AwsCloud:
    """AWS on the endpoint of one local cloud. moto is imported at the first request, or at the start if there is a
    saved state."""

    def __init__(self, home: Path, endpoint: str, fault_rules: faults.Faults) -> None:
        self._home = home
        self._endpoint = endpoint
        self._faults = fault_rules
        self._simulation: Simulation | None = None
        self.hosts: Machines  # set before the first call
        self.record = AwsRecord()
        # Called on the event loop after each PutObject: with the bucket, the key and the content.
        self.after_put: Callable[[str, str, bytes], None] = lambda bucket, key, content: None
        self._loop: asyncio.AbstractEventLoop | None = None
        # One thread, because moto is not thread-safe.
        self._thread = ThreadPoolExecutor(1, "aws")
        account.load_keys(home)

    def takes(self, request: Request) -> bool:
        """Whether a request is for AWS: it has AWS's signature, or a header that only AWS's clients send. They send
        `amz-sdk-invocation-id` with unsigned requests, too."""
        return (
            request.path.startswith(metadata.PATH)
            or sigv4.is_signed(request)
            or any(name in request.headers for name in _ONLY_AWS)
        )

    def recover(self) -> None:
        """Restarts the instances that ran when the cloud ended, and marks their commands as failed. Called on the loop,
        after `hosts` is set."""
        self._loop = asyncio.get_running_loop()

        def restart(_: object) -> None:
            commands.fail_all()
            for instance in machine_view.active_instances():
                machine_view.mark_pending(instance)

        if kept.exists(account.aws_folder(self._home)):
            self._report(restart)

    async def answer(self, request: Request, body: Body) -> tuple[Reply, str]:
        if request.path.startswith(metadata.PATH):
            if not self._is_used():
                return Reply(404), ""
            return await self._on_thread(lambda simulation: simulation.metadata(request))
        if not sigv4.is_signed(request):
            service = _service_of(request)
            raise RefusalError(Reason.UNSIGNED, "Missing Authentication Token" if service else "Access Denied")
        signed = sigv4.parse_sigv4(request)
        if signed.scope.service not in SERVICES:
            raise RefusalError(Reason.UNKNOWN_OPERATION, f"The local AWS has no service {signed.scope.service[:40]!a}")
        return await self._answer(request, signed, SERVICES[signed.scope.service], body)

    def refused(self, request: Request, error: ApiError) -> Reply:
        """The reply for an error, in the format of the request's service. The instance metadata service has a plain
        one."""
        if request.path.startswith(metadata.PATH):
            return plain_refusal(error)
        return reply_to(error, _service_of(request))

    def operation(self, request: Request) -> str:
        return ""

    async def _answer(
        self, request: Request, signed: sigv4.SignedRequest, service: AwsService, body: Body
    ) -> tuple[Reply, str]:
        stated = bool(sigv4.stated_payload(request, signed))
        # If the headers state the body's digest, the signature is verified before the body is received.
        caller = None
        if stated:
            caller = await self._on_thread(lambda simulation: simulation.principal(request, signed, None))
        content = await body.to_memory(MAXIMUM_OBJECT if service.wire is Wire.S3 and stated else MAXIMUM_BODY)
        digest = hashlib.sha256(content).hexdigest()
        sigv4.check_body_hash(request, signed, digest)
        if caller is None:
            caller = await self._on_thread(lambda simulation: simulation.principal(request, signed, digest))
        call, principal = read_raw_call(service, signed.scope.region, request, content), caller
        await faults.strike_before(self._faults, call.name, _refusal_of)
        answer = await self._on_thread(lambda simulation: simulation.answer(call, signed.key_id, principal))
        if call.name == "s3.PutObject" and answer[0].status == 200:
            self.after_put(call.parameters["Bucket"], call.parameters["Key"], call.body)
        faults.strike_after(self._faults, call.name)
        return answer

    async def _on_thread(self, work: Callable[[Simulation], Answer]) -> Answer:
        """Runs `work` on the simulation's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._with_simulation, work)

    def _with_simulation(self, work: Callable[[Simulation], Answer]) -> Answer:
        """Runs `work` with the simulation, and creates it first if necessary. Called on the simulation's thread."""
        if self._simulation is None:
            from localcloud.aws.simulation import Simulation

            self._simulation = Simulation(self._home, self._endpoint, self._outside(), self.record)
        return work(self._simulation)

    def _outside(self) -> Outside:
        return Outside(
            self.hosts,
            no_capacity=lambda kind: self._strikes_type("no-capacity", "ec2.RunInstances", kind),
            spot_notice=lambda kind: self._strikes_type("spot", "SpotInstanceAction", kind),
            session_seconds=lambda: self._on_loop(lambda: self._faults.seconds("token", "sts.AssumeRole")),
            limit=lambda name: self._on_loop(lambda: fault.value if (fault := self._faults.limit(name)) else None),
        )  # fmt: skip

    def _strikes_type(self, kind: str, operation: str, instance_type: str) -> bool:
        def has_type(fault: faults.Fault) -> bool:
            return fnmatchcase(instance_type, fault.shape)

        return bool(self._on_loop(lambda: self._faults.strike(kind, operation, has_type)))

    def _on_loop(self, work: Callable[[], Answer]) -> Answer:
        """Runs `work` on the event loop and waits for it, because only the loop may use the faults. Called on the
        simulation's thread."""
        if self._loop is None:
            raise RuntimeError("the local AWS got a call before its cloud ran")
        done: Future[Answer] = Future()

        def step() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(step)
        return done.result(_LOOP_SECONDS)

    def _report(self, change: Callable[[Simulation], object]) -> None:
        """Applies a report of the hosts on the simulation's thread. Reports keep their order."""

        def work(simulation: Simulation) -> None:
            simulation.change(lambda: change(simulation))

        def step() -> None:
            try:
                self._with_simulation(work)
            except Exception:
                log.exception("a report of the hosts could not be applied")

        with suppress(RuntimeError):  # the cloud is ending
            self._thread.submit(step)

    def running(self, instance: str) -> None:
        self._report(lambda _: machine_view.mark_running(instance))

    def agent_ready(self, instance: str) -> None:
        self._report(lambda _: machine_view.mark_agent_ready(instance))

    def ended_itself(self, instance: str) -> None:
        self._report(lambda _: machine_view.mark_shut_down(instance))

    def failed(self, instance: str, reason: str) -> None:
        self._report(lambda _: machine_view.mark_failed(instance, reason))

    def command_began(self, command: str, instance: str) -> None:
        self._report(lambda _: commands.mark_began(command, instance))

    def command_ended(self, command: str, instance: str, code: int | None, output: str, errors: str) -> None:
        self._report(lambda _: commands.mark_ended(command, instance, code, output, errors))

    async def groups(self, region: str, ids: Sequence[str]) -> Sequence[SecurityGroupRules]:
        def find(_: object) -> list[SecurityGroupRules]:
            every = (machine_view.group_rules(moto_backend("ec2", region), identifier) for identifier in ids)
            return [rules for rules in every if rules is not None]

        return await self._on_thread(find)

    async def subnet_facts(self, region: str, subnet: str) -> SubnetFacts | None:
        return await self._on_thread(lambda _: machine_view.subnet_facts(moto_backend("ec2", region), subnet))

    async def machines(self) -> Sequence[Machine]:
        return await self.read_state(machine_view.active_machines) or ()

    async def read_state(self, read: Callable[[], Answer]) -> Answer | None:
        """Reads moto's state on the simulation's thread, where nothing changes meanwhile. Returns None if AWS was never
        used here; then moto is not imported."""
        return await self._on_thread(lambda simulation: read()) if self._is_used() else None

    def _is_used(self) -> bool:
        return self._simulation is not None or kept.exists(account.aws_folder(self._home))

    async def close(self) -> None:
        """Waits for the calls that have begun, then closes the saved state."""
        if self._simulation is not None:  # a connection of sqlite may be used on one thread only
            self._thread.submit(self._simulation.close)
        await asyncio.to_thread(self._thread.shutdown, wait=True)


def _refusal_of(fault: faults.Fault) -> RefusalError:
    """The refusal that a fault of the kind `status` causes."""
    reason = _REASONS.get(fault.status, Reason.BROKEN if fault.status >= 500 else Reason.MALFORMED)
    # For 429 and 503, each service of AWS has its own status. It is used unless the fault names a code.
    status = fault.status if fault.code or fault.status not in _REASONS else 0
    return RefusalError(reason, faults.REQUESTED, fault.code, status)


def _service_of(request: Request) -> AwsService | None:
    """The service whose error format a reply must have: by the request's signature, otherwise by its headers."""
    if sigv4.is_signed(request):
        with suppress(RefusalError):
            if service := SERVICES.get(sigv4.parse_sigv4(request).scope.service):
                return service
    if "x-amz-target" in request.headers:
        return SERVICES["ssm"]
    form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    return SERVICES["sts"] if form else None
