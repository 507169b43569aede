# SPDX-License-Identifier: Apache-2.0
"""An image built by a real builder, run with the real launcher in it, pushed to the local cloud and pulled back.

No base can be fetched for a test, so one is made of this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oci
import pytest

from components.oci.client.registry import TOKEN_USER, registry_token
from components.oci.client.session import Session
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.machine_base import VERSION as PYTHON
from tests.support.machine_base import MachineBase
from tests.support.shadows import write_shadows
from tests.support.wheels import write_wheel
from trainyard.images import build_push
from trainyard.images.image_tools import NAMES, TOOLS

ROOT = Path(__file__).resolve().parents[2]
BASE = "localhost/machine:1"
BUILDAH = TOOLS[NAMES.index("buildah")]
LONGEST_SECONDS = 900.0
# Modules of the team by the names of ours and of Python's own, as the image sees them.
SHADOWS = "/home/datascience/code/library"
STACK = """\
config:
  oci:region: us-ashburn-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:tenancy: {cloud.tenancy}
  trainyard:compartment: {cloud.compartment}
  trainyard:access: {{ users: {{ group: scientists }} }}
  trainyard:registry: {{ repository: vision/own }}
  trainyard:frameworks: {{ script: ./script.toml }}
  trainyard:jobs:
    line:
      framework: script
      image: ${{registry}}:1.4
      shape: {{ name: VM.Standard.E4.Flex, ocpus: 1, memoryGb: 8 }}
      roles: {{ main: 1 }}
      command: train.py --epochs 2
      requirements: ./packages.txt
      runs: {{ base: {{}} }}
"""
TRAIN = """\
import os, pathlib, socket, sys
print("args", *sys.argv[1:])
print("user", os.getuid(), os.getgid(), pathlib.Path.home(), pathlib.Path.cwd())
print("added", pathlib.Path("/opt/trainyard/images/team.txt").read_text().strip().replace("\\n", " "))
print("tinypack", __import__("tinypack").VERSION)
print("framework", __import__("tensorflow").VERSION, __import__("torch").VERSION)
print("rank", os.environ["TRAINYARD_RANK"])
sys.exit(3)
"""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(name) is None for name in ("buildah", "gcc")),
    reason="buildah and gcc are not installed (tests/apt-packages.txt), or this is not root",
)


@dataclass(frozen=True)
class Yard:
    """A stack, a cloud, and a builder with a store of its own."""

    cloud: Cloud
    folder: Path
    environment: Mapping[str, str]

    def trainyard(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "trainyard", "image", *words)

    def buildah(self, *words: str, **more: str) -> str:
        done = self.run("buildah", *words, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=ROOT, env={**self.environment, **more}, capture_output=True, text=True, timeout=LONGEST_SECONDS
        )

    @property
    def stack(self) -> str:
        return str(self.folder / "Pulumi.own.yaml")

    @property
    def address(self) -> str:
        return f"iad.ocir.io/{self.cloud.namespace}/vision/own:1.4"


@pytest.fixture(scope="module")
def yard(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    folder = tmp_path_factory.mktemp("images")
    (folder / "code").mkdir()
    write_shadows(folder / "code", folder / "code" / "library", ("socket", "struct", "usercustomize"))
    (folder / "code" / "train.py").write_text(TRAIN)
    shutil.copy(ROOT / "stacks" / "examples" / "own-framework" / "script.toml", folder)
    (folder / "Pulumi.own.yaml").write_text(STACK.format(cloud=shared_cloud))
    # With its own store, and without kernel features that a container may lack.
    settings = f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/running"\n'
    (folder / "storage.conf").write_text(settings)
    environment = {
        **os.environ, **shared_cloud.env, "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(folder),
        "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
    }  # fmt: skip
    made = Yard(shared_cloud, folder, environment)
    # The base image has TensorFlow and PyTorch with names and versions that no index has.
    (folder / "packages.txt").write_text("tinypack==1.0\ntensorflow>=2.10\ntorch==1.13.*,>=1.13\n")
    # The build cannot reach an index: packages are in the base image, and pip's configuration names the folder.
    (folder / "base" / "packages").mkdir(parents=True)
    write_wheel(folder / "base" / "packages", "tinypack", "1.0", {"tinypack.py": "VERSION = '1.0'\n"})
    (folder / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /packages\n")
    MachineBase(folder / "base", ROOT / "launcher" / "pin" / "pin.c")
    for name, version in {"tensorflow_cpu": "2.21.0", "torch": "1.13.0a0+gitunknown"}.items():
        module = {f"{name.partition('_')[0]}.py": f"VERSION = {version!r}\n"}
        with zipfile.ZipFile(write_wheel(folder, name, version, module)) as wheel:
            wheel.extractall(folder / "base" / "usr" / "local" / "lib" / PYTHON / "site-packages")
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    try:
        _needs_a_builder(made)
        yield made
    finally:
        made.run("buildah", "rm", "--all")
        made.run("buildah", "rmi", "--all", "--force")
        shutil.rmtree(folder, ignore_errors=True)


def _needs_a_builder(yard: Yard) -> None:
    """Makes the base image. If the system does not allow it to build and run an image, the test is skipped."""
    said = yard.run(
        "buildah", "build", "--quiet", "--file", f"{yard.folder}/Dockerfile", "--tag", BASE, f"{yard.folder}/base"
    )
    container = yard.run("buildah", "from", BASE) if said.returncode == 0 else said
    said = (
        yard.run("buildah", "run", container.stdout.strip(), "--", "sh", "-c", ":") if container.stdout else container
    )
    if said.returncode:
        pytest.skip(f"buildah cannot work on this machine: {said.stderr.strip().splitlines()[-1:]}")


@pytest.fixture(scope="module")
def built(yard: Yard) -> str:
    """What the build printed."""
    own = ["--base", BASE, "--arg", f"TOOLS={BASE}", "--code", str(yard.folder / "code")]
    own += ["--pip-config", str(yard.folder / "pip.conf")]
    done = yard.trainyard("build", yard.stack, "--tool", "buildah", *own)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _described(yard: Yard) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(yard.buildah("inspect", "--type", "image", yard.address))
    return described


@pytest.mark.torture
def test_a_build_shows_its_progress_and_what_comes_next(yard: Yard, built: str) -> None:
    assert built.startswith(f"{yard.address}: own, cpu, for line\n")
    assert "STEP" in built
    assert built.endswith(f"Push with: trainyard image push {yard.stack}\n")


def test_a_built_image_has_labels(yard: Yard, built: str) -> None:
    config = _described(yard)["OCIv1"]["config"]
    assert (config["User"], config["Entrypoint"]) == ("1000:1000", ["python", "-I", "-m", "launcher"])
    assert config["Labels"]["org.opencontainers.image.version"] == "1.4"
    assert config["Labels"]["org.opencontainers.image.base.name"] == BASE
    assert config["Labels"]["trainyard.framework"] == "own"


def test_the_launcher_runs_the_teams_code_in_it(yard: Yard, built: str) -> None:
    planned = subprocess.run(
        [sys.executable, "-m", "trainyard", "plan", yard.stack, "--launch", "line/base/main-0"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    alone = {"folder": None, "checkpoints": None, "peers": {"from": "list", "addresses": ["127.0.0.1"]}}
    document = {**json.loads(planned.stdout), **alone}
    container = yard.buildah("from", yard.address)

    def launched(document: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
        told = [f"TRAINYARD_LAUNCH={json.dumps(document)}", f"PYTHONPATH={SHADOWS}"]
        return yard.run(
            "buildah",
            "run",
            *(f"--env={variable}" for variable in told),
            container,
            "--",
            "python",
            "-I",
            "-m",
            "launcher",
        )

    stale = launched({**document, "packages": "0" * 16})
    assert "the job's `requirements:` have changed since this image was built" in stale.stdout + stale.stderr
    assert "trainyard image build own" in stale.stdout + stale.stderr
    done = launched(document)
    printed = done.stdout + done.stderr
    assert "added --only-binary :all: tinypack==1.0" in printed
    assert "tinypack 1.0" in printed
    assert "framework 2.21.0 1.13.0a0+gitunknown" in printed, "what the base has is not installed again"
    assert "args --epochs 2" in printed
    assert "user 1000 1000 /home/datascience /home/datascience/code" in printed
    assert "rank 0" in printed
    # buildah ends with the code of what it ran.
    assert done.returncode == 3, printed


def test_the_library_in_an_image_keeps_ports_to_their_range(yard: Yard, built: str, tmp_path: Path) -> None:
    container = yard.buildah("from", yard.address)
    script = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print(s.getsockname()[1])"
    words = f'LD_PRELOAD="$TRAINYARD_PIN_LIBRARY" TRAINYARD_PIN_PORTS=21300-21363 python -c "{script}" >/told/port'
    told = tmp_path / "told"  # a file, for buildah may end before it has handed on all that was printed
    told.mkdir()
    told.chmod(0o777)
    yard.buildah("run", "--volume", f"{told}:/told", container, "--", "sh", "-c", words)
    assert 21300 <= int((told / "port").read_text()) <= 21363


def test_an_image_goes_to_the_registry_and_comes_back(yard: Yard, built: str) -> None:
    first = yard.trainyard("push", yard.stack, "--tool", "buildah")
    assert first.returncode == 1
    assert "the repository vision/own does not exist yet\nMake it first: pulumi up -s own" in first.stderr
    artifacts = Clients(yard.cloud).artifacts
    details = oci.artifacts.models.CreateContainerRepositoryDetails(
        compartment_id=yard.cloud.compartment, display_name="vision/own"
    )
    repository = artifacts.create_container_repository(details).data.id
    pushed = yard.trainyard("push", yard.stack, "--tool", "buildah")
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    # No token (a JWT) is in the output.
    assert "eyJ" not in pushed.stdout + pushed.stderr
    [image] = artifacts.list_container_images(yard.cloud.compartment, repository_id=repository).data.items
    assert (image.version, pushed.stdout.splitlines()[-1].strip()) == ("1.4", image.digest)
    _is_pulled_back(yard, image.digest)
    again = yard.trainyard("push", yard.stack, "--tool", "buildah")
    assert again.returncode == 1
    assert f"has 1.4 already ({image.digest})" in again.stderr
    over = yard.trainyard("push", yard.stack, "--tool", "buildah", "--overwrite")
    assert over.returncode == 0, over.stdout + over.stderr
    unknown = yard.trainyard("push", yard.stack, "--tool", "buildah", "--overwrite", "--no-sign-in")
    assert unknown.returncode == 1
    assert "got no login, or did not accept it" in unknown.stderr


def _is_pulled_back(yard: Yard, digest: str) -> None:
    place = build_push.registry_endpoint("iad.ocir.io", yard.cloud.env)
    folder = yard.folder / "login"
    folder.mkdir()
    session = Session(profile="deployer", config_file=str(yard.cloud.config_file))
    login = build_push.login_variables(BUILDAH, folder, place, TOKEN_USER, registry_token(session, place))
    address = place.address(yard.address)
    yard.buildah("pull", "--quiet", "--tls-verify=false", f"docker://{address}", **login)
    told = json.loads(yard.buildah("inspect", "--type", "image", address))
    assert told["FromImageDigest"] == digest
    assert told["OCIv1"]["config"] == _described(yard)["OCIv1"]["config"]


def test_a_failed_build_gives_a_remedy(yard: Yard) -> None:
    never = "localhost/never-made:1"
    done = yard.trainyard("build", yard.stack, "--tool", "buildah", "--base", never, "--arg", f"TOOLS={never}")
    assert done.returncode == 1
    assert "never-made" in done.stdout
    assert "buildah did not build" in done.stderr
    assert "--base takes another base image" in done.stderr
