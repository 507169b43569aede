# SPDX-License-Identifier: Apache-2.0
"""The local OpenPAI as one of the cloud's APIs: its REST server, and its log manager."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from pathlib import Path

from components.openpai.client.storages import storages_folder
from components.openpai.protocol import LONGEST_TEXT
from localcloud.openpai import accounts, job_calls, logs, user_calls
from localcloud.openpai.accounts import PEOPLE, Accounts
from localcloud.openpai.attempts import logs_folder
from localcloud.openpai.controller import Controller
from localcloud.openpai.job_store import JobStore
from localcloud.openpai.rest import Parts, RestCall, Route
from localcloud.openpai.rest_errors import no_api
from localcloud.openpai.storages import DEFAULT
from localcloud.openpai.submitting import submit_job
from localcloud.openpai.tasks import Tasks
from localcloud.openpai.tokens import Tokens
from localcloud.openpai.virtual_clusters import Allocations
from localcloud.server import faults
from localcloud.server.api_errors import INTERNAL_ERROR, ApiError, CloudFailureError
from localcloud.server.http import Body, Reply, Request, require_single_headers
from localcloud.server.routing import Router

_JOB = "/jobs/{job}"
_TASK = _JOB + "/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts"

ROUTES = (
    Route("GetInfo", "GET", "/info", user_calls.get_server_info, guests=True),
    Route("BasicLogin", "POST", "/authn/basic/login", user_calls.log_in, guests=True),
    Route("BasicLogout", "DELETE", "/authn/basic/logout", user_calls.log_out),
    Route("GetTokens", "GET", "/tokens", user_calls.list_tokens),
    Route("CheckToken", "GET", "/tokens/check", user_calls.check_token),
    Route("CreateApplicationToken", "POST", "/tokens/application", user_calls.application_token),
    Route("DeleteToken", "DELETE", "/tokens/{token}", user_calls.revoke_token),
    Route("ListUsers", "GET", "/users", user_calls.list_users),
    Route("GetUser", "GET", "/users/{user}", user_calls.get_user),
    Route("ListVirtualClusters", "GET", "/virtual-clusters", user_calls.list_clusters),
    Route("GetVirtualCluster", "GET", "/virtual-clusters/{cluster}", user_calls.get_cluster),
    Route("ListStorages", "GET", "/storages", user_calls.list_storages),
    Route("GetStorage", "GET", "/storages/{storage}", user_calls.get_storage),
    Route("SubmitJob", "POST", "/jobs", submit_job),
    Route("ListJobs", "GET", "/jobs", job_calls.list_jobs),
    Route("GetJob", "GET", _JOB, job_calls.get_job),
    Route("GetJob", "GET", _JOB + "/attempts/{attempt}", job_calls.get_job),
    Route("GetJobConfig", "GET", _JOB + "/config", job_calls.get_config),
    Route("ExecuteJob", "PUT", _JOB + "/executionType", job_calls.set_execution_state),
    Route("AddTag", "PUT", _JOB + "/tag", job_calls.add_tag),
    Route("DeleteTag", "DELETE", _JOB + "/tag", job_calls.delete_tag),
    Route("GetEvents", "GET", _JOB + "/events", job_calls.list_job_events),
    Route("GetJobAttemptsHealth", "GET", _JOB + "/job-attempts/healthz", job_calls.answer_health_check),
    Route("ListJobAttempts", "GET", _JOB + "/job-attempts", job_calls.list_job_attempts),
    Route("GetJobAttempt", "GET", _JOB + "/job-attempts/{attempt}", job_calls.get_job_attempt),
    Route("GetTask", "GET", _TASK, job_calls.get_task),
    Route("GetTaskLogs", "GET", _TASK + "/{try}/logs", job_calls.get_log_addresses),
)
_ROUTER = Router(ROUTES)
PREFIX = "/rest-server"
_VERSION = PREFIX + "/api/v2"
_UNKNOWN = "UnknownError"
_FORM = "application/x-www-form-urlencoded"
_SECONDS_BETWEEN_PRUNINGS = 60.0
log = logging.getLogger("localcloud")


class OpenPaiCluster:
    """An OpenPAI cluster on the endpoint of a local cloud. Making it takes only milliseconds."""

    def __init__(self, home: Path, endpoint: str, strikes: faults.Faults) -> None:
        folder = accounts.openpai_folder(home)
        folder.mkdir(mode=0o700, exist_ok=True)
        store = JobStore(folder / "state.sqlite3")
        tokens = Tokens(folder, store)
        allocations = Allocations(lambda name: fault.value if (fault := strikes.limit(name)) else None)
        self.controller = Controller(home, store, allocations)
        self.parts = Parts(home, store, tokens, allocations, self.controller, strikes)
        (storages_folder(home) / DEFAULT).mkdir(parents=True, exist_ok=True)
        self._create_accounts(endpoint)

    def _create_accounts(self, endpoint: str) -> None:
        """Gives each user a password and a token for programs. They stay the same at later starts."""
        home, tokens = self.parts.home, self.parts.tokens
        try:
            existing = accounts.read_accounts(home)
        except (FileNotFoundError, ValueError, KeyError):
            existing = Accounts(endpoint)
        by_name = {
            person.name: existing.tokens[person.name]
            if tokens.user_of(existing.tokens.get(person.name, ""))
            else tokens.create(person.name, application=True)
            for person in PEOPLE
        }
        passwords = {person.name: existing.passwords.get(person.name) or accounts.new_password() for person in PEOPLE}
        accounts.write_accounts(home, Accounts(endpoint, by_name, passwords))

    async def recover(self, tasks: Tasks) -> None:
        """Resumes jobs that had not ended when the cloud did. `tasks` carries them out from now on."""
        await tasks.recover()
        self.controller.tasks = tasks
        self.controller.recover()

    async def keep_pruned(self) -> None:
        """Removes old jobs at intervals, until it is cancelled: otherwise the cluster would grow without limit."""
        home, store = self.parts.home, self.parts.store
        remove_unknown_logs(home, store)
        while True:
            try:
                self.parts.tokens.remove_expired()
                await asyncio.to_thread(_remove_attempt_logs, home, store.prune())
            except (OSError, sqlite3.Error):
                log.exception("pruning")  # such as a full disk, which may have space again next time
            await asyncio.sleep(_SECONDS_BETWEEN_PRUNINGS)

    def close(self) -> None:
        """Called when the hosts have ended. Jobs resume at the next start."""
        self.controller.close()
        self.parts.store.close()

    def takes(self, request: Request) -> bool:
        return request.path.startswith((PREFIX + "/", logs.PATH))

    async def answer(self, request: Request, body: Body) -> tuple[Reply, str]:
        require_single_headers(request)
        if request.path.startswith(logs.PATH):
            return await self._log(request)
        return await self._call(request, body)

    def refused(self, request: Request, error: ApiError) -> Reply:
        """Writes an error response. An error without a code is a failure of the REST server itself."""
        code = error.code
        if isinstance(error, CloudFailureError):
            code = _UNKNOWN if error.status == INTERNAL_ERROR else code
        elif not code.endswith("Error"):  # of an error that all APIs share
            code = "InvalidParametersError" if error.status == 400 else _UNKNOWN
        return Reply(error.status, {**({"code": code} if error.code else {}), "message": error.message})

    def operation(self, request: Request) -> str:
        return ""

    async def _call(self, request: Request, body: Body) -> tuple[Reply, str]:
        found = _ROUTER.find(request.method, request.path.removeprefix(_VERSION))
        # Empty parameters of a path do not match.
        if found is None or not all(found[1].values()) or not request.path.startswith(_VERSION + "/"):
            raise no_api(request.path[:200])
        route, params = found
        caller = None if route.guests else self.parts.tokens.caller(request.headers.get("authorization", ""))
        content = await body.to_memory(LONGEST_TEXT)
        operation = f"openpai.{route.name}"
        await faults.strike_before(self.parts.faults, operation)
        is_form = request.headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM
        reply = route.handler(RestCall(self.parts, params, request.query, caller, content, is_form))
        if reply.later:
            reply = await reply.later()
        faults.strike_after(self.parts.faults, operation)
        return reply, f"{operation} by {caller.person.name if caller else 'a guest'}"

    async def _log(self, request: Request) -> tuple[Reply, str]:
        operation = "openpai.ReadLog"
        await faults.strike_before(self.parts.faults, operation)
        span = request.headers.get("range", "")
        reply = logs.read_log(self.parts.home, self.parts.tokens, request.path, request.query, span)
        faults.strike_after(self.parts.faults, operation)
        return reply, operation


def remove_unknown_logs(home: Path, store: JobStore) -> None:
    """Removes logs of unknown attempts. They remain if the cloud was killed while it removed jobs."""
    folder = logs_folder(home)
    if folder.is_dir():
        known = store.attempt_ids()
        _remove_attempt_logs(home, [path.name for path in folder.iterdir() if path.name not in known])


def _remove_attempt_logs(home: Path, attempts: list[str]) -> None:
    for attempt in attempts:
        shutil.rmtree(logs_folder(home) / attempt, ignore_errors=True)
