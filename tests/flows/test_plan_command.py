# SPDX-License-Identifier: Apache-2.0
"""`trainyard plan` and `trainyard access` as commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from catalog.platforms import platforms
from components.openpai.protocol import protocol_problems
from tests.support.examples import SMALLEST
from trainyard.cli.main import COMMANDS as COMMANDS_OF_ALL
from trainyard.cli.main import main

ROOT = Path(__file__).parents[2]
STACKS = ROOT / "stacks"
EXAMPLES = sorted(STACKS.glob("Pulumi.*.yaml"))
COMMANDS = ("plan", "access")
JOB = """\
  trainyard:jobs:
    resnet:
      framework: pytorch
      image: ${registry}:1.4
      shape: VM.GPU.A10.1
      roles: { main: 1, worker: 1 }
      command: train.py
      env: { HF_TOKEN: { secure: AAABAMciphertext } }
      runs: { base: {} }
"""
# Importing one of these takes long: they are SDKs of a cloud or of the engine.
HEAVY = ("pulumi", "pulumi_oci", "oci", "grpc", "boto3")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    file = tmp_path / "Pulumi.vision.yaml"
    file.write_text(SMALLEST + JOB)
    return file


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_plan_of_every_example_is_deterministic_also_as_json(file: Path, command: str) -> None:
    first, again, values = run(command, file), run(command, file), run(command, file, "--format", "json")
    assert first.exit_code == values.exit_code == 0, first.output
    assert first.stdout == again.stdout
    assert json.loads(values.stdout)["stack"] == file.stem.removeprefix("Pulumi.")


@pytest.mark.parametrize("name", ["oci-ray", "aws-dl1-resnet", "openpai-ddp-gloo"])
def test_layouts_are_shown_where_a_platform_has_more_than_one(name: str) -> None:
    platform = json.loads(run("plan", name, "--format", "json").stdout)["platform"]
    one_layout = "node-groups" in platforms()[platform].lacks
    assert ("\n  layout " in run("plan", name).stdout) == (not one_layout)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stack_is_found_by_its_name(stack: Path, command: str) -> None:
    by_name, by_file = run(command, "vision", "--stacks", stack.parent), run(command, stack)
    assert by_name.exit_code == 0
    assert by_name.stdout == by_file.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_name_gets_the_nearest_suggestion(stack: Path, command: str) -> None:
    wrong = run(command, "visoin", "--stacks", stack.parent)
    assert wrong.exit_code == 2
    assert "no stack `visoin`" in wrong.output
    assert "did you mean `vision`?" in wrong.output


@pytest.mark.parametrize("command", COMMANDS)
def test_plan_reports_the_errors_of_check(stack: Path, command: str) -> None:
    stack.write_text(SMALLEST + JOB.replace("framework: pytorch", "framework: pytorhc"))
    for form in ("text", "json"):
        told, checked = run(command, stack, "--format", form), run("check", stack, "--format", form)
        assert told.exit_code == checked.exit_code == 1
        assert told.stdout == checked.stdout
        assert "pytorch" in told.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_file_is_reported(tmp_path: Path, command: str) -> None:
    missing = run(command, tmp_path / "Pulumi.none.yaml")
    assert missing.exit_code == 2
    assert "TY001" in missing.output


def test_warnings_go_to_standard_error_and_leave_the_plan_complete(stack: Path) -> None:
    stack.write_text((SMALLEST + JOB).replace("VM.GPU.A10.1", "VM.GPU.A11.9"))
    told = run("plan", stack, "--format", "json")
    assert told.exit_code == 0, told.output
    assert "trainyard check" in told.stderr
    assert json.loads(told.stdout)["jobs"]["resnet"]["shape"]["name"] == "VM.GPU.A11.9"


def test_no_secret_is_printed_encrypted_or_not(stack: Path) -> None:
    for options in ([], ["--format", "json"], ["--launch", "resnet/base/main-0"]):
        told = run("plan", stack, *options)
        assert told.exit_code == 0, told.output
        assert "ciphertext" not in told.output
    assert "HF_TOKEN=(secret)" in run("plan", stack).stdout


def documents(*arguments: str | Path) -> dict[str, Any]:
    """What `plan --documents` prints: by the name in the comment above each document."""
    told = run("plan", *arguments, "--documents")
    assert told.exit_code == 0, told.output
    names = [line.removeprefix("# ") for line in told.stdout.splitlines() if line.startswith("# ")]
    assert json.loads(run("plan", *arguments, "--documents", "--format", "json").stdout).keys() == {*names}
    return dict(zip(names, yaml.safe_load_all(told.stdout), strict=True))


@pytest.mark.parametrize("name", ["oci-ray", "aws-dl1-resnet"])
def test_a_run_has_the_variables_and_launch_documents_of_its_nodes(name: str) -> None:
    for run_name, document in documents(name).items():
        for node in document["nodes"]:
            launch = json.loads(run("plan", name, "--launch", f"{run_name}/{node['name']}").stdout)
            assert node["environment"]["TRAINYARD_LAUNCH"] == launch


def test_openpai_is_told_a_job_of_its_protocol() -> None:
    (document,) = documents("openpai-ddp-gloo").values()
    assert (document["type"], document["protocolVersion"]) == ("job", 2)
    assert document["parameters"]["trainyard_code"].startswith("(the packed code, ")
    known = {**document, "name": "job", "extras": {}}
    assert not [*protocol_problems(known)]


def test_documents_show_no_secrets_and_are_not_mixed_with_a_launch_document(stack: Path) -> None:
    told = documents(stack)["resnet/base"]["nodes"][0]["environment"]
    assert told["HF_TOKEN"] == "(secret)"
    assert "ciphertext" not in run("plan", stack, "--documents").output
    both = run("plan", stack, "--documents", "--launch", "resnet/base/main-0")
    assert (both.exit_code, "cannot be used together" in both.output) == (2, True)


def test_one_launch_document_is_printed_on_request(stack: Path) -> None:
    told = run("plan", stack, "--launch", "resnet/base/worker-0")
    document = json.loads(told.stdout)
    assert (document["node"], document["rank"], document["framework"]) == ("worker-0", 1, "pytorch")
    wrong = run("plan", stack, "--launch", "resnet/base/worker-7")
    assert wrong.exit_code == 2
    assert "no node `worker-7`" in wrong.output
    assert "`worker-0`" in wrong.output


def test_the_deployers_group_can_be_named(stack: Path) -> None:
    assert "Allow group platform-team to" in run("access", stack, "--deployers", "platform-team").stdout
    assert "Allow group 'Eng'/'ops team' to" in run("access", stack, "--deployers", "Eng/ops team").stdout
    assert (
        "Allow group id ocid1.group.oc1..ops to" in run("access", stack, "--deployers", "ocid1.group.oc1..ops").stdout
    )


@pytest.mark.parametrize("group", ["", "it's", "a/b/c"])
def test_an_invalid_group_name_is_a_usage_error(stack: Path, group: str) -> None:
    told = run("access", stack, "--deployers", group)
    assert told.exit_code == 2
    assert "--deployers: name" in told.output


@pytest.mark.parametrize("command", COMMANDS)
def test_plan_and_access_import_no_sdk(stack: Path, command: str) -> None:
    program = (
        "import sys\n"
        "from trainyard.cli.main import main\n"
        f"main([{command!r}, {str(stack)!r}], standalone_mode=False)\n"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"
    assert done.stderr == ""


def test_no_command_imports_an_sdk_at_its_start() -> None:
    """Commands import Oracle's SDK at their first call, and never Pulumi's, which only programs need."""
    modules = sorted({f"trainyard.cli.{place.partition(':')[0]}" for place, _ in COMMANDS_OF_ALL.values()})
    program = f"import sys, {', '.join(modules)}; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_control_character_of_a_file_reaches_the_terminal(stack: Path) -> None:
    stack.write_text((SMALLEST + JOB).replace("command: train.py", 'command: "train.py --title \\e[31mred"'))
    told = run("plan", stack)
    assert told.exit_code == 0, told.output
    assert "\x1b" not in told.output
    assert "[31mred" in told.output
