# SPDX-License-Identifier: Apache-2.0
"""The local OpenPAI with OpenPAI's published JavaScript client, and compared with OpenPAI's description of the API."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin
from urllib.request import urlopen

import pytest
import yaml

from localcloud import admin
from localcloud.control import Cloud
from tests.support.client_environment import environment
from tests.support.openpai_description import LOCK, description
from tests.support.openpai_world import ADMIN, USER, OpenPaiWorld, job
from tests.support.waiting import LONGEST_SECONDS, eventually

COMMANDS = Path(__file__).parent / "javascript" / "commands.js"
FORM, TEXT = "application/x-www-form-urlencoded", "text/yaml"
# More than half of the virtual cluster `reserved`: of two such jobs, one waits.
MOST_OF_RESERVED = {"cpu": 1, "memoryMB": 512, "gpu": 40}


@dataclass
class RefusedError(Exception):
    """The error of the client."""

    kind: str
    status: int
    code: str


class JavaScript:
    """`sdk("job", "listJobs")`: one method of the client."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, part: str, method: str, *values: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([part, method, values]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            error = answer["error"]
            raise RefusedError(error["class"], error.get("status", 0), (error.get("data") or {}).get("code", ""))
        return answer.get("result")


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud) -> OpenPaiWorld:
    return OpenPaiWorld(shared_cloud)


@pytest.fixture(scope="module")
def jobs(world: OpenPaiWorld) -> Mapping[str, str]:
    """A job in each state that a response can have, by the state's name."""
    full = {"role": {"resourcePerInstance": MOST_OF_RESERVED}, "defaults": {"virtualCluster": "reserved"}}
    names = {
        "good": world.submitted(
            job("good", "echo to stdout", "echo to stderr >&2", secrets={"password": "s3cret-value"})
        ),
        "bad": world.submitted(job("bad", "exit 3", jobRetryCount=1)),
        "running": world.submitted(job("running", "sleep 3600", **full), ADMIN),
    }
    world.reaches(names["running"], "RUNNING")
    names["waiting"] = world.submitted(job("waiting", **full), ADMIN)
    for name in ("good", "bad"):
        world.ended(names[name])
    return names


@pytest.fixture(scope="module")
def sdk(world: OpenPaiWorld, jobs: Mapping[str, str]) -> Iterator[JavaScript]:
    node = environment(LOCK)
    accounts = world.accounts
    cluster = {
        "rest_server_uri": f"{accounts['uri']}/rest-server", "username": USER, "password": accounts["passwords"][USER],
    }  # fmt: skip
    command = [str(node / "node"), str(COMMANDS), json.dumps(cluster)]
    env = {"NODE_PATH": str(node.parent / "node_modules"), "PATH": str(node), "NO_PROXY": "*"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as process:
        try:
            yield JavaScript(process)
        finally:
            assert process.stdin
            process.stdin.close()


def test_the_client_submits_a_job_and_follows_it_to_its_logs(sdk: JavaScript, world: OpenPaiWorld) -> None:
    protocol = job("by-sdk", "echo I am $PAI_CURRENT_TASK_ROLE_NAME of $PAI_JOB_NAME")
    assert "by-sdk" in sdk("job", "createJob", protocol)["message"]
    world.ended("user~by-sdk")
    status = sdk("job", "getJob", USER, "by-sdk")
    assert status["jobStatus"]["state"] == "SUCCEEDED"
    assert [task["taskState"] for task in status["taskRoles"]["worker"]["taskStatuses"]] == ["SUCCEEDED"]
    assert sdk("job", "getJob", USER, "by-sdk", 0)["jobStatus"]["attemptState"] == "SUCCEEDED"
    assert sdk("job", "getJobConfig", USER, "by-sdk")["taskRoles"].keys() == {"worker"}
    task = sdk("job", "getTask", USER, "by-sdk", 0, "worker", 0)
    assert [one["attemptState"] for one in task["attempts"]] == ["SUCCEEDED"]
    logs = {
        one["name"]: one["uri"] for one in sdk("job", "getTaskLogs", USER, "by-sdk", 0, "worker", 0, 0)["locations"]
    }
    assert {"stdout", "stderr", "all"} <= logs.keys()
    assert re.search("I am worker of .*by-sdk", _log(world, logs["stdout"]))


def _log(world: OpenPaiWorld, address: str) -> str:
    """Reads a log from the cluster's address, which contains a token."""
    with urlopen(urljoin(world.cloud.endpoint, address), timeout=LONGEST_SECONDS) as answer:
        return str(answer.read().decode())


def test_the_client_stops_tags_and_lists_jobs(sdk: JavaScript, world: OpenPaiWorld) -> None:
    sdk("job", "createJob", job("stopped", "sleep 3600"))
    world.reaches("user~stopped", "RUNNING")
    sdk("job", "addTag", USER, "stopped", "too long")
    assert [one["name"] for one in sdk("job", "listJobs", {"tagsContain": "too long"})] == ["stopped"]
    sdk("job", "updateJobExecutionType", USER, "stopped", "STOP")
    assert world.ended("user~stopped")["jobStatus"]["state"] == "STOPPED"
    sdk("job", "deleteTag", USER, "stopped", "too long")
    assert sdk("job", "listJobs", {"tagsContain": "too long"}) == []
    counted = sdk("job", "listJobs", {"username": USER, "state": "STOPPED", "withTotalCount": True, "limit": 1})
    assert (counted["totalCount"], [one["name"] for one in counted["data"]]) == (1, ["stopped"])


def test_the_client_sees_each_attempt_of_a_job_that_was_retried(sdk: JavaScript, jobs: Mapping[str, str]) -> None:
    status = sdk("job", "getJob", USER, "bad")["jobStatus"]
    assert (status["state"], status["retries"], status["attemptId"]) == ("FAILED", 1, 1)
    attempts = sdk("jobHistory", "getJobAttempts", USER, "bad")
    assert sorted(one["attemptIndex"] for one in attempts) == [0, 1]
    assert sdk("jobHistory", "getJobAttempt", USER, "bad", 0)["state"] == "FAILED"


def test_the_client_logs_in_and_reads_cluster_data(sdk: JavaScript, world: OpenPaiWorld) -> None:
    info = sdk("authn", "basicLogin", USER, world.accounts["passwords"][USER])
    assert (info["user"], info["admin"]) == (USER, False)
    assert info["token"] in sdk("token", "getTokens")["tokens"]
    sdk("token", "deleteToken", info["token"])
    assert info["token"] not in sdk("token", "getTokens")["tokens"]
    assert sdk("token", "createApplicationToken")["application"]
    assert sdk("api", "getClusterInfo")["launcherType"] == "k8s"
    assert "default" in sdk("virtualCluster", "listVirtualClusters")
    assert sdk("virtualCluster", "getVirtualCluster", "default")["resourcesTotal"]["gpu"] > 0
    assert sdk("user", "getUser", USER)["virtualCluster"] == ["default"]
    [name] = [one["name"] for one in sdk("storage", "getStorages")["storages"] if one["default"]]
    assert sdk("storage", "getStorage", name)["type"] == "nfs"


@pytest.mark.parametrize(
    ("call", "kind", "status", "code"),
    [
        (("job", "getJob", USER, "nobody-s"), "NoJobError", 404, "NoJobError"),
        (("job", "createJob", job("good")), "PAIBaseError", 409, "ConflictJobError"),
        (("job", "updateJobExecutionType", ADMIN, "running", "STOP"), "ForbiddenUserError", 403, "ForbiddenUserError"),
        (("user", "getUser", "nobody"), "NoUserError", 400, "NoUserError"),
        (("storage", "getStorage", "none"), "PAIBaseError", 404, "NoStorageError"),
        (("virtualCluster", "getVirtualCluster", "none"), "PAIBaseError", 404, "NoVirtualClusterError"),
    ],
    ids=lambda value: " ".join(map(str, value[:2])) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_the_client_gets_the_error_codes_of_the_description(
    call: tuple[Any, ...], kind: str, status: int, code: str, sdk: JavaScript
) -> None:
    with pytest.raises(RefusedError) as refused:
        sdk(*call)
    assert refused.value == RefusedError(kind, status, code)


# Each response of each operation of the local cluster: user, request, body, and expected response. `<name>` is a job of
# the fixture. A body of text is a job.
_TASK = "/api/v2/jobs/<good>/attempts/0/taskRoles/worker/taskIndex/0/attempts"
_LOGIN = "/api/v2/authn/basic/login"
SPENT, NO_TOKEN, APPLICATION, FRESH = "a token that was revoked", "", "an application's token", "<token>"


@dataclass(frozen=True)
class Row:
    method: str
    path: str
    status: int
    code: str = ""
    body: Any = None
    kind: str = ""
    user: str = USER
    token: str | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.status} {self.code}".strip()


def _submits(code: str, status: int, protocol: Any, **more: Any) -> Row:
    text = protocol if isinstance(protocol, bytes) else yaml.safe_dump(protocol).encode()
    return Row("POST", "/api/v2/jobs", status, code, text, TEXT, **more)


def _form(**values: str) -> bytes:
    return urlencode(values).encode()


ROWS = (
    Row("GET", "/api/v2/info", 200, token=NO_TOKEN),
    Row("GET", "/api/v2/tokens", 200),
    Row("GET", "/api/v2/tokens", 401, "UnauthorizedUserError", token=NO_TOKEN),
    Row("GET", "/api/v2/tokens", 401, "UnauthorizedUserError", token=SPENT),
    Row("DELETE", "/api/v2/tokens/<token>", 200),
    Row("DELETE", "/api/v2/tokens/<admin-token>", 403, "ForbiddenUserError"),
    Row("DELETE", "/api/v2/tokens/x", 401, "UnauthorizedUserError", token=NO_TOKEN),
    Row("POST", "/api/v2/tokens/application", 200),
    Row("POST", "/api/v2/tokens/application", 401, "UnauthorizedUserError", token=NO_TOKEN),
    Row("POST", _LOGIN, 200, body="<password>", kind=FORM, token=NO_TOKEN),
    Row("POST", _LOGIN, 400, "IncorrectPasswordError", _form(username=USER, password="no"), FORM, token=NO_TOKEN),
    Row("POST", _LOGIN, 400, "NoUserError", _form(username="nobody", password="no"), FORM, token=NO_TOKEN),
    Row("DELETE", "/api/v2/authn/basic/logout", 200, token=FRESH),
    Row("DELETE", "/api/v2/authn/basic/logout", 401, "UnauthorizedUserError", token=NO_TOKEN),
    Row("DELETE", "/api/v2/authn/basic/logout", 403, "ForbiddenUserError", token=APPLICATION),
    Row("GET", "/api/v2/users", 200, user=ADMIN),
    Row("GET", "/api/v2/users/user", 200),
    Row("GET", "/api/v2/users/user", 401, "UnauthorizedUserError", token=NO_TOKEN),
    Row("GET", "/api/v2/users/nobody", 400, "NoUserError"),
    Row("GET", "/api/v2/virtual-clusters", 200),
    Row("GET", "/api/v2/virtual-clusters/default", 200),
    Row("GET", "/api/v2/virtual-clusters/none", 404, "NoVirtualClusterError"),
    Row("GET", "/api/v2/storages", 200),
    Row("GET", "/api/v2/storages/shared", 200),
    Row("GET", "/api/v2/storages/none", 404, "NoStorageError"),
    _submits("", 202, job("described")),
    _submits("UnauthorizedUserError", 401, job("described"), token=NO_TOKEN),
    _submits("ForbiddenUserError", 403, job("elsewhere", defaults={"virtualCluster": "none"})),
    _submits("InvalidProtocolError", 400, {**job("wrong"), "protocolVersion": 1}),
    _submits("InvalidProtocolError", 400, b"[1]"),
    _submits("", 500, b"{"),
    _submits("ForbiddenUserError", 403, job("another-s", defaults={"virtualCluster": "reserved"})),
    _submits("InvalidProtocolError", 400,
             job("vast", role={"resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 10**6}})),
    _submits("ConflictJobError", 409, job("good")),
    Row("GET", "/api/v2/jobs", 200),
    Row("GET", "/api/v2/jobs?withTotalCount=true&limit=2&order=jobName,ASC", 200),
    *(Row("GET", f"/api/v2/jobs/<{name}>", 200) for name in ("good", "bad", "running", "waiting")),
    Row("GET", "/api/v2/jobs/user~none", 404, "NoJobError"),
    *(Row("GET", f"/api/v2/jobs/<{name}>/attempts/0", 200) for name in ("good", "bad", "running")),
    Row("GET", "/api/v2/jobs/<good>/attempts/7", 404, "NoJobError"),
    Row("GET", "/api/v2/jobs/<good>/config", 200),
    Row("GET", "/api/v2/jobs/user~none/config", 404, "NoJobError"),
    Row("PUT", "/api/v2/jobs/<good>/executionType", 202, body={"value": "STOP"}),
    Row("PUT", "/api/v2/jobs/<good>/executionType", 400, "InvalidParametersError", {"value": "PAUSE"}),
    Row("PUT", "/api/v2/jobs/user~none/executionType", 404, "NoJobError", {"value": "STOP"}),
    Row("PUT", "/api/v2/jobs/<good>/tag", 200, body={"value": "kept"}),
    Row("PUT", "/api/v2/jobs/<good>/tag", 400, "InvalidParametersError", {"value": 7}),
    Row("PUT", "/api/v2/jobs/user~none/tag", 404, "NoJobError", {"value": "kept"}),
    Row("DELETE", "/api/v2/jobs/<bad>/tag", 200, body={"value": "removed"}),
    Row("DELETE", "/api/v2/jobs/<good>/tag", 400, "InvalidParametersError", {}),
    Row("DELETE", "/api/v2/jobs/<good>/tag", 404, "NoTagError", {"value": "never there"}),
    Row("DELETE", "/api/v2/jobs/user~none/tag", 404, "NoJobError", {"value": "kept"}),
    Row("GET", "/api/v2/jobs/<waiting>/events", 200),
    Row("GET", "/api/v2/jobs/<good>/events?type=Normal", 200),
    Row("GET", "/api/v2/jobs/user~none/events", 404, "NoJobError"),
    Row("GET", "/api/v2/jobs/<good>/job-attempts/healthz", 200),
    *(Row("GET", f"/api/v2/jobs/<{name}>/job-attempts", 200) for name in ("good", "bad", "running")),
    Row("GET", "/api/v2/jobs/user~none/job-attempts", 404, "NoJobError"),
    Row("GET", "/api/v2/jobs/<bad>/job-attempts/0", 200),
    Row("GET", "/api/v2/jobs/<bad>/job-attempts/9", 404, "NoJobError"),
    Row("GET", _TASK, 200),
    Row("GET", _TASK.replace("worker", "ps"), 404, "NoJobError"),
    Row("GET", f"{_TASK}/0/logs", 200),
    Row("GET", f"{_TASK}/9/logs", 404, "NoTaskLogError"),
)  # fmt: skip
# Operations of the description that the local cluster does not have, and why.
ABSENT = {
    "/api/v2/authn/oidc": "there is no Azure Active Directory: people log in by name and password",
    "/api/v2/groups": "groups follow from virtual clusters",
    "POST /api/v2/users": "the people of the local cluster are fixed",
    "PUT /api/v2/users": "the people of the local cluster are fixed",
    "DELETE /api/v2/users": "the people of the local cluster are fixed",
    "/api/v2/kubernetes": "there is no Kubernetes",
}


@pytest.fixture(scope="module")
def words(world: OpenPaiWorld, jobs: Mapping[str, str]) -> Mapping[str, str]:
    """The values of placeholders in the rows."""
    spent = _login(world, USER)
    assert world.ask("DELETE", f"/api/v2/tokens/{spent}", token=spent).status == 200
    world.ask("PUT", f"/api/v2/jobs/{jobs['bad']}/tag", {"value": "removed"})
    return {
        **{f"<{name}>": full for name, full in jobs.items()}, SPENT: spent, APPLICATION: world.token(USER),
        "<admin-token>": _login(world, ADMIN), USER: _login(world, USER), ADMIN: _login(world, ADMIN),
        "<password>": _form(username=USER, password=world.accounts["passwords"][USER]).decode(),
    }  # fmt: skip


def _login(world: OpenPaiWorld, user: str) -> str:
    """A token of a user who has logged in."""
    form = _form(username=user, password=world.accounts["passwords"][user])
    return str(world.ask("POST", _LOGIN, form, kind=FORM, token=NO_TOKEN).body["token"])


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_response_matches_the_description(row: Row, world: OpenPaiWorld, words: Mapping[str, str]) -> None:
    own = {**words, FRESH: _login(world, USER)} if FRESH in (row.token, row.path.rpartition("/")[2]) else words
    path = row.path
    for word, value in own.items():
        path = path.replace(word, value) if word.startswith("<") else path
    token = row.token if row.token == NO_TOKEN else own[row.token or row.user]
    sent = own["<password>"].encode() if row.body == "<password>" else row.body
    answer = world.ask(row.method, path, sent, token=token, kind=row.kind)
    assert answer.status == row.status, answer.content
    assert not row.code or answer.body["code"] == row.code
    plain = path.partition("?")[0]
    assert description().problems(row.method, plain, answer.status, answer.kind, answer.body) == []
    assert "s3cret-value" not in answer.content.decode()


def _absent(name: str) -> bool:
    return any(name.startswith(start) or name.partition(" ")[2].startswith(start) for start in ABSENT)


def test_every_operation_of_the_description_is_implemented_or_listed_as_missing() -> None:
    answered = {description().operation(row.method, _plain(row.path)).name for row in ROWS}
    described = {operation.name for operation in description().operations}
    absent = {name for name in described if _absent(name)}
    assert answered | absent == described
    assert not answered & absent


def test_every_refusal_of_the_description_is_tested() -> None:
    """All responses except 500 and 501, which no caller can cause, and those about another team's storages, which all
    users may use here."""
    met = {(description().operation(row.method, _plain(row.path)).name, row.status) for row in ROWS}
    names = {name for name, _ in met}
    described = {
        (operation.name, int(status))
        for operation in description().operations
        if operation.name in names
        for status in operation.responses
        if 400 <= int(status) < 500
    }
    unreachable = {
        ("GET /api/v2/storages/{storage}", 403): "every user may use every storage",
        ("POST /api/v2/authn/basic/login", 404): "OpenPAI's code answers 400, as the description says elsewhere",
        ("GET /api/v2/users/{user}", 404): "OpenPAI's code answers 400",
    }
    assert described - met == unreachable.keys()


def _plain(path: str) -> str:
    """A row's path, with its placeholders not filled in."""
    for word in ("<token>", "<admin-token>"):
        path = path.replace(word, "token")
    return path.partition("?")[0].replace("<", "user~").replace(">", "")


def test_missing_operations_are_named(world: OpenPaiWorld) -> None:
    for operation in description().operations:
        if _absent(operation.name):
            path = operation.template.replace("{", "").replace("}", "")
            answer = world.ask(operation.method, path, user=ADMIN)
            assert (answer.status, answer.body["code"]) in ((404, "NoApiError"), (405, "NoApiError")), operation.name


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_fault_on_request_is_an_answer_of_this_api(status: int, world: OpenPaiWorld, sdk: JavaScript) -> None:
    admin.add_fault(world.cloud, kind="status", status=status, operations="openpai.GetJob", times=1)
    with pytest.raises(RefusedError) as refused:
        sdk("job", "getJob", USER, "good")
    assert refused.value.status == status
    assert sdk("job", "getJob", USER, "good")["name"] == "good"


def test_a_login_token_expires_and_the_client_gets_the_error(world: OpenPaiWorld, sdk: JavaScript) -> None:
    fault = admin.add_fault(world.cloud, "token", seconds=1, operations="openpai.BasicLogin")
    token = _login(world, USER)
    admin.clear_faults(world.cloud, fault["id"])
    answer = eventually(lambda: world.ask("GET", "/api/v2/tokens", token=token), lambda given: given.status != 200)
    assert (answer.status, answer.body["code"]) == (401, "UnauthorizedUserError")
    assert token not in sdk("token", "getTokens")["tokens"]
