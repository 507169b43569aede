# SPDX-License-Identifier: Apache-2.0
"""A `pulumi-language-python` for machines that have only the `pulumi` command: a LanguageRuntime server.

It runs programs, providers by path and policy packs in Python. It generates no packages: such calls return
UNIMPLEMENTED, and need Pulumi's own host. For `pulumi import`, which asks for generated code, it returns a comment.
"""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import empty_pb2, json_format

from trainyard.engine.callers import LoopbackServer
from trainyard.engine.children import (
    Children,
    Interpreter,
    NoPythonError,
    find_interpreter,
    signal_child,
    wanted_virtualenv,
)
from trainyard.engine.folders import Folders, OtherFolderError, engine_call
from trainyard.engine.isolated import isolated_python
from trainyard.engine.program import TOLD_THE_USER

if TYPE_CHECKING:
    from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2
else:
    from trainyard.engine.protocol import language_pb2, language_pb2_grpc, plugin_pb2

PROGRAM = Path(__file__).with_name("program.py")
# Run and RunPlugin take as long as a deployment. Each holds a thread: for the program, and for each provider and pack.
THREADS = 64
LARGEST_MESSAGE = 400 * 1024 * 1024
NO_CODE = """\
# Nothing to copy: a program of trainyard declares what its stack file says.
# For a program of your own, Pulumi's own host for Python (pulumi-language-python) generates the code.
"""


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The engine's LanguageRuntime service for Python."""

    def __init__(self, engine_address: str, folders: Folders) -> None:
        self.engine_address = engine_address
        self.knows_callers = False
        self._folders = folders
        self.children = Children()
        self._programs: set[subprocess.Popen[bytes]] = set()

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        self.engine_address = request.engine_address
        # Where the caller's account is unknown, a Handshake adds no folders.
        if self.knows_callers:
            for folder in filter(None, (request.root_directory, request.program_directory)):
                self._folders.add(folder)
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo()

    def GetRequiredPackages(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        # The SDKs name their plugin with each resource, so the engine downloads a plugin when it is first used. A list
        # here would also make it download the plugins of SDKs that are installed but not used.
        self._require(request.info, context)
        return language_pb2.GetRequiredPackagesResponse()

    def GetRequiredPlugins(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return language_pb2.GetRequiredPluginsResponse()

    def RuntimeOptionsPrompts(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return language_pb2.RuntimeOptionsResponse()

    def About(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        project_python = self._interpreter(request.info, context)
        show = "import platform; print(platform.python_version())"
        command = isolated_python("-c", show, python=project_python.python)
        version = subprocess.run(command, capture_output=True, text=True, check=False)
        return language_pb2.AboutResponse(executable=project_python.python, version=version.stdout.strip())

    def GetProgramDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        project_python = self._interpreter(request.info, context)
        words = ["-m", "pip", "list", "--format=json", "--disable-pip-version-check"]
        command = isolated_python(*words, python=project_python.python)
        if not request.transitiveDependencies:
            command.append("--not-required")
        listing = subprocess.run(command, capture_output=True, text=True, check=False)
        if listing.returncode:
            context.abort(grpc.StatusCode.INTERNAL, f"pip list failed: {listing.stderr.strip()}")
        packages = [
            language_pb2.DependencyInfo(name=package["name"], version=package["version"])
            for package in json.loads(listing.stdout)
        ]
        return language_pb2.GetProgramDependenciesResponse(dependencies=packages)

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        self._require(request.info, context, request.directory)
        root = Path(request.info.root_directory or request.directory)
        folder = self._or_abort(context, lambda: wanted_virtualenv(root, _options_of_request(request.info)))
        commands = []
        if folder and not (folder / "bin" / "python").is_file():
            commands.append(isolated_python("-m", "venv", str(folder)))
        python = str(folder / "bin" / "python") if folder else sys.executable
        if (root / "requirements.txt").is_file():
            commands.append(isolated_python("-m", "pip", "install", "-r", "requirements.txt", python=python))
        elif (root / "pyproject.toml").is_file():
            commands.append(isolated_python("-m", "pip", "install", "-e", ".", python=python))
        for command in commands:
            pipe = subprocess.PIPE
            child = self.children.start(command, str(root), os.environ, output=pipe, errors=pipe)
            for stream, chunk in self.children.output(child, context):
                yield language_pb2.InstallDependenciesResponse(**{stream: chunk})
            if child.returncode:
                context.abort(grpc.StatusCode.INTERNAL, f"`{' '.join(command)}` failed in {root}")

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        entry = _program_entry(request)
        place = entry if os.path.isdir(entry) else os.path.dirname(entry)
        project_python = self._interpreter(request.info, context, request.pwd, place)
        # The program inherits our output, and the engine shows it.
        command = [project_python.python, "-u", str(PROGRAM)]
        env = project_python.environment(os.environ)
        child = self.children.start(command, request.pwd, env, stdin=subprocess.PIPE)
        self._programs.add(child)
        try:
            context.add_callback(lambda: signal_child(child, signal.SIGINT))
            with contextlib.suppress(BrokenPipeError):
                child.communicate(json.dumps(_program_settings(request, self.engine_address)).encode())
            exit_code = child.wait()
            if exit_code == 0:
                return language_pb2.RunResponse()
            if exit_code in (TOLD_THE_USER, -signal.SIGINT):
                return language_pb2.RunResponse(bail=True)
            how = f"was ended by signal {-exit_code}" if exit_code < 0 else f"exited with code {exit_code}"
            return language_pb2.RunResponse(error=f"the program {how}")
        finally:
            self._programs.discard(child)
            self.children.forget(child)

    def GenerateProgram(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        # `pulumi import` calls this even when the resource is in the state already.
        return language_pb2.GenerateProgramResponse(source={"__main__.py": NO_CODE.encode()})

    def RunPlugin(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802
        project_python = self._interpreter(request.info, context, request.pwd, plugin=True)
        folder = request.info.program_directory
        if not (Path(folder) / "__main__.py").is_file():
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{folder}: a plugin in Python needs a __main__.py")
        command = [project_python.python, "-u", folder, *request.args]
        env = project_python.environment(dict(pair.split("=", 1) for pair in request.env))
        pipe = subprocess.PIPE
        try:
            child = self.children.start(command, request.pwd, env, output=pipe, errors=pipe)
        except OSError as problem:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, _cannot_start(folder, problem))
        for stream, chunk in self.children.output(child, context):
            printed: dict[str, Any] = {stream: chunk}
            yield language_pb2.RunPluginResponse(**printed)
        yield language_pb2.RunPluginResponse(exitcode=child.returncode)

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        # This stops programs only. Providers still have calls to finish, and the engine ends them itself.
        for program in list(self._programs):
            signal_child(program, signal.SIGINT)
        return empty_pb2.Empty()

    def _interpreter(
        self, info: Any, context: grpc.ServicerContext, *folders: str, plugin: bool = False
    ) -> Interpreter:
        self._require(info, context, *folders)
        project_python: Interpreter = self._or_abort(
            context, lambda: find_interpreter(Path(info.root_directory), _options_of_request(info), plugin)
        )
        return project_python

    def _require(self, info: Any, context: grpc.ServicerContext, *folders: str) -> None:
        """Refuses folders, and a Python, that the project does not name."""
        try:
            self._folders.require(info.root_directory, info.program_directory, *folders)
            self._folders.require_python(info.root_directory, _options_of_request(info))
        except OtherFolderError as problem:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, str(problem))

    def _or_abort(self, context: grpc.ServicerContext, ask: Any) -> Any:
        try:
            return ask()
        except NoPythonError as problem:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(problem))


def _options_of_request(info: Any) -> Mapping[str, object]:
    options: dict[str, object] = json_format.MessageToDict(info.options)
    return options


def _program_settings(request: Any, engine_address: str) -> dict[str, Any]:
    return {
        "entry": _program_entry(request),
        "arguments": list(request.args),
        "parallel": request.parallel,
        "config": dict(request.config),
        "secret_keys": list(request.configSecretKeys),
        "deployment": {
            "project": request.project,
            "stack": request.stack,
            "organization": request.organization or "organization",
            "monitor": request.monitor_address,
            "engine": engine_address,
            "parallel": request.parallel,
            "dry_run": request.dryRun,
            "root_directory": request.info.root_directory,
        },
    }


def _program_entry(request: Any) -> str:
    folder, program = request.info.program_directory or request.pwd, request.info.entry_point or request.program
    entry: str = os.path.normpath(os.path.join(folder, program))
    return entry


def _cannot_start(folder: str, problem: OSError) -> str:
    if problem.errno != errno.E2BIG:
        return f"{folder}: the plugin cannot be started: {problem}"
    return (
        f"{folder}: the plugin cannot be started: the engine gives it the whole stack configuration in one\n"
        "environment variable, and Linux allows 128 KiB there. Make the stack file smaller, or split the stack."
    )


def main() -> int:
    """Serves until the engine ends. The engine reads the port from the first line of output."""
    addresses = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    done = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        done.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    # Under nohup, SIGHUP stays ignored. SIGINT must end the host even there: the engine ends hosts with it.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, end)
    sizes = [(f"grpc.max_{way}_message_length", LARGEST_MESSAGE) for way in ("send", "receive")]
    server = LoopbackServer(ThreadPoolExecutor(THREADS), options=sizes)
    folders = Folders(Path.cwd(), engine_call(os.getppid(), os.environ), os.environ)
    host = LanguageHost(addresses[-1] if addresses else "", folders)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port()
    host.knows_callers = server.knows_callers
    server.start()
    print(port, flush=True)
    # Until a request to stop, or until the engine that started this host is gone: its death sends no signal.
    engine = os.getppid()
    while not done.wait(0.5) and os.getppid() == engine:
        pass
    host.children.stop_all()
    server.stop(0).wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
