# SPDX-License-Identifier: Apache-2.0
"""Other accounts of this machine cannot use the servers that the engine starts.

Every account reaches every port on loopback. So each server that runs our code asks the kernel whose socket calls, and
a language host runs the folders of the project that it was started for.
"""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from google.protobuf import empty_pb2
from google.protobuf.descriptor import ServiceDescriptor
from pulumi.runtime.proto import analyzer_pb2, language_pb2, language_pb2_grpc, plugin_pb2, provider_pb2

from localcloud.control import Cloud
from tests.support.other_account import STRANGER, needs_root, strangers_port

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120.0
HOST, NOBODYS_ENGINE = (sys.executable, "-m", "trainyard.engine.language_host"), "127.0.0.1:1"
SERVERS = {
    "language host": (HOST, language_pb2.DESCRIPTOR.services_by_name["LanguageRuntime"]),
    "provider": ((sys.executable, "provider"), provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"]),
    "plugin oci": (
        (sys.executable, "-m", "localcloud.oci.plugin"),
        provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"],
    ),
    "plugin aws": (
        (sys.executable, "-m", "localcloud.aws.plugin"),
        provider_pb2.DESCRIPTOR.services_by_name["ResourceProvider"],
    ),
    # Its SDK prints the port without a flush; a language host starts programs with this flag.
    "policy pack": ((sys.executable, "-u", "policies"), analyzer_pb2.DESCRIPTOR.services_by_name["Analyzer"]),
}
# It prints its account, as an attacker's program would, and then serves nothing.
PLUGIN = "import os, pathlib, sys; pathlib.Path({proof!r}).write_text(str(os.geteuid())); print('ran', flush=True)\n"


@contextmanager
def _served(command: Sequence[str], folder: Path = ROOT, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Starts the server as an engine does. `words`: further arguments of the engine."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PULUMI_HOME": str(folder / "pulumi"), "GRPC_VERBOSITY": "NONE"}
    if words:
        env["PULUMI_OPTION_POLICY_PACK"] = ",".join(words)
    with subprocess.Popen([*command, NOBODYS_ENGINE], cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server
        finally:
            server.terminate()
            try:
                server.wait(SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


def _port(server: "subprocess.Popen[str]") -> int:
    assert server.stdout
    return int(server.stdout.readline())


def _answers(port: int, service: ServiceDescriptor) -> dict[str, grpc.StatusCode]:
    """The response of each method to an empty request."""
    said = {}
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for method in service.methods:
            ways = (method.client_streaming, method.server_streaming)
            kind = "_".join("stream" if streams else "unary" for streams in ways)
            request = iter([b""]) if method.client_streaming else b""
            try:
                answer = getattr(channel, kind)(f"/{service.full_name}/{method.name}")(request, timeout=SECONDS)
                if method.server_streaming:
                    list(answer)
                said[method.name] = grpc.StatusCode.OK
            except grpc.RpcError as error:
                said[method.name] = error.code()
    return said


@needs_root
@pytest.mark.parametrize("name", SERVERS)
def test_no_server_answers_another_account(name: str) -> None:
    command, service = SERVERS[name]
    with _served(command) as server:
        port = _port(server)
        for target in ("127.0.0.1", "::ffff:127.0.0.1"):
            with strangers_port(port, target) as theirs:
                assert set(_answers(theirs, service).values()) == {grpc.StatusCode.PERMISSION_DENIED}
        own = _answers(port, service)
        assert own["GetPluginInfo"] == grpc.StatusCode.OK
        connections = psutil.Process(server.pid).net_connections("tcp")
        listening = {place.laddr.ip for place in connections if place.status == psutil.CONN_LISTEN}
        assert listening <= {"127.0.0.1", "::ffff:127.0.0.1"}


def _project(folder: Path) -> Path:
    """A project that names a plugin by its path, and a policy pack that it does not name."""
    for name, file in (("program", "Pulumi.yaml"), ("plugin", "PulumiPlugin.yaml"), ("pack", "PulumiPolicy.yaml")):
        (folder / name).mkdir()
        (folder / name / file).write_text("name: notes\nruntime: { name: python, options: { virtualenv: ../venv } }\n")
        (folder / name / "__main__.py").write_text(PLUGIN.format(proof=str(folder / f"{name} ran")))
    (folder / "venv").symlink_to(sys.prefix)
    with (folder / "program" / "Pulumi.yaml").open("a") as project:
        project.write("plugins: { providers: [{ name: notes, path: ../plugin }] }\n")
    return folder / "program"


def _strangers(folder: Path) -> Path:
    """The attacker's folder, with the files of a plugin."""
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "__main__.py").write_text(PLUGIN.format(proof=str(folder / "theirs ran")))
    (theirs / "venv").symlink_to(sys.prefix)
    for path in (theirs, *theirs.iterdir()):
        os.chown(path, *((STRANGER, STRANGER) if os.geteuid() == 0 else (-1, -1)), follow_symlinks=False)
    return theirs


def _info(folder: Path, virtualenv: str = "../venv") -> Any:
    info = language_pb2.ProgramInfo(root_directory=str(folder), program_directory=str(folder), entry_point=".")
    if virtualenv:
        info.options.update({"virtualenv": virtualenv})
    return info


def _run_plugin(stub: Any, folder: Path, virtualenv: str = "../venv") -> str:
    """What it printed."""
    request = language_pb2.RunPluginRequest(info=_info(folder, virtualenv), pwd=str(folder.parent / "program"))
    return b"".join(part.stdout for part in stub.RunPlugin(request, timeout=SECONDS)).decode()


@contextmanager
def _host(port: int) -> Iterator[Any]:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield language_pb2_grpc.LanguageRuntimeStub(channel)


@needs_root
def test_another_account_cannot_make_a_host_run_its_folder(tmp_path: Path) -> None:
    """The attack: earlier, `up` ran a program that any account of the machine could name."""
    project, theirs = _project(tmp_path), _strangers(tmp_path)
    with _served(HOST, project) as server, strangers_port(_port(server)) as port, _host(port) as stub:
        for folder, virtualenv in ((theirs, ""), (project.parent / "plugin", "../venv")):
            with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED") as refused:
                _run_plugin(stub, folder, virtualenv)
            assert f"user id is {STRANGER}" in str(refused.value)
    assert not list(tmp_path.glob("* ran"))


def _calls(folder: Path, virtualenv: str) -> dict[str, Any]:
    info = _info(folder, virtualenv)
    return {
        "RunPlugin": language_pb2.RunPluginRequest(info=info, pwd=str(folder)),
        "Run": language_pb2.RunRequest(info=info, pwd=str(folder), program="."),
        "InstallDependencies": language_pb2.InstallDependenciesRequest(info=info, directory=str(folder)),
        "GetRequiredPackages": language_pb2.GetRequiredPackagesRequest(info=info),
        "About": language_pb2.AboutRequest(info=info),
        "GetProgramDependencies": language_pb2.GetProgramDependenciesRequest(info=info),
    }


def _refusal(stub: Any, method: str, request: Any) -> str:
    call = getattr(stub, method)
    streams = method in ("RunPlugin", "InstallDependencies")
    with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED") as refused:
        list(call(request, timeout=SECONDS)) if streams else call(request, timeout=SECONDS)
    details: str = refused.value.details()
    return details


def test_a_host_runs_only_folders_that_its_project_names(tmp_path: Path) -> None:
    project, theirs = _project(tmp_path), _strangers(tmp_path)
    with _served(HOST, project, str(tmp_path / "pack")) as server, _host(_port(server)) as stub:
        for method, request in _calls(theirs, "").items():
            assert "only the project" in _refusal(stub, method, request), method
        # The folder is the project's, but the Python or the program is not.
        for method, request in _calls(project, str(theirs / "venv")).items():
            assert "names the virtual environment" in _refusal(stub, method, request), method
        run = language_pb2.RunRequest(info=_info(project), pwd=str(project), program=".")
        run.info.entry_point = str(theirs)
        assert "only the project" in _refusal(stub, "Run", run)
        assert not list(tmp_path.glob("* ran"))
        assert [_run_plugin(stub, tmp_path / name) for name in ("plugin", "pack")] == ["ran\n", "ran\n"]
        stub.GetPluginInfo(empty_pb2.Empty(), timeout=SECONDS)
    assert [path.name for path in sorted(tmp_path.glob("* ran"))] == ["pack ran", "plugin ran"]


def test_a_policy_pack_that_nobody_named_is_not_run(tmp_path: Path) -> None:
    project = _project(tmp_path)
    with _served(HOST, project) as server, _host(_port(server)) as stub:
        call = _calls(tmp_path / "pack", "../venv")["RunPlugin"]
        assert "only the project" in _refusal(stub, "RunPlugin", call)
    assert not list(tmp_path.glob("* ran"))


def test_a_handshake_of_our_own_account_names_folders(tmp_path: Path) -> None:
    """Current engines send no token to a host that they start, but to one that was started by hand."""
    project, elsewhere = _project(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    with _served(HOST, elsewhere) as server, _host(_port(server)) as stub:
        call = _calls(project, "../venv")["GetRequiredPackages"]
        assert _refusal(stub, "GetRequiredPackages", call)
        shake = language_pb2.LanguageHandshakeRequest(
            engine_address=NOBODYS_ENGINE, root_directory=str(project), program_directory=str(project)
        )
        stub.Handshake(shake, timeout=SECONDS)
        stub.GetRequiredPackages(call, timeout=SECONDS)
        assert isinstance(stub.GetPluginInfo(empty_pb2.Empty(), timeout=SECONDS), plugin_pb2.PluginInfo)


# The local cloud's responses to requests without credentials.
ANSWERED = {
    "/.trainyard": 200,
    "/console": 200,
    "/console/data": 200,
    "/rest-server/api/v2/info": 200,
    "/v2/": 401,
    "/n": 401,
    "/20160918/users": 401,
    "/.trainyard/faults": 401,
    "/.trainyard/calls": 401,
    "/.trainyard/hosts": 401,
    "/.trainyard/evidence": 401,
    "/.trainyard/progress": 401,
    "/.trainyard/tokens": 401,
    "/rest-server/api/v2/jobs": 401,
    "/rest-server/api/v2/users": 401,
    "/rest-server/api/v2/storages": 401,
    "/rest-server/api/v2/tokens": 401,
}


def _status(cloud: Cloud, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(cloud.endpoint.removeprefix("http://"), timeout=SECONDS)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_requests_without_credentials_get_only_the_listed_responses(shared_cloud: Cloud) -> None:
    assert {path: _status(shared_cloud, path)[0] for path in ANSWERED} == ANSWERED
    told = b"".join(_status(shared_cloud, path)[1] for path, status in ANSWERED.items() if status == 200)
    keys = [path for path in shared_cloud.home.joinpath("keys").rglob("*") if path.is_file()]
    assert keys
    assert not [path for path in keys if path.read_bytes().strip() in told]


def test_the_cloud_listens_on_loopback_only_and_its_folder_is_closed(shared_cloud: Cloud) -> None:
    connections = psutil.Process(shared_cloud.pid).net_connections("tcp")
    assert {place.laddr.ip for place in connections if place.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
    assert shared_cloud.home.stat().st_mode & 0o077 == 0


def test_only_this_machines_host_names_get_the_marker(shared_cloud: Cloud) -> None:
    """A web page of another site could reach this port by a host name that resolves to this machine, and read the
    response."""
    port = shared_cloud.endpoint.rpartition(":")[2]
    others = ("evil.example", f"127.0.0.1.evil.example:{port}", "10.0.0.1:80", "127.0.0.1:80", "", ":80")
    for host in (f"evil.example:{port}", *others):
        status, told = _status(shared_cloud, "/.trainyard", Host=host)
        assert (status, b"tenancy" in told) == (403, False), host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        status, told = _status(shared_cloud, "/.trainyard", Host=host)
        assert (status, b"tenancy" in told, str(shared_cloud.home).encode() in told) == (200, True, False), host
