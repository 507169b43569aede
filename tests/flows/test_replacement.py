# SPDX-License-Identifier: Apache-2.0
"""Every kind of change, through the real engine: it replaces a resource exactly if the row of its type says so.

Previews show the effect of each changed field, one field of each type at a time. `up` then makes the changes that the
local cloud supports. `make test` takes a field of each type, `make torture` all of them.
"""

import json
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.oci.types import SERVED_TYPES
from components.values.resource_types import resource_types_of_provider
from localcloud import admin
from localcloud.control import Cloud
from localcloud.oci.plugin.plugin import LocalOci
from localcloud.oci.plugin.table import OciResource
from tests.support.cloud_fixture import Clients
from tests.support.counts import FIRST, wanted
from tests.support.local_team import LONGEST_SECONDS, summary
from tests.support.plugin_world import BUCKET, CASES, PROJECT, VCN
from trainyard.engine.obtain import local_stack_environment

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).with_name("changes_project")
JOB = "oci:DataScience/job:Job"
GROUP = "oci:Identity/dynamicGroup:DynamicGroup"
# Changes that force a replacement, and that are possible while all other resources stay.
REPLACED: Mapping[str, Mapping[str, Any]] = {
    "oci:Identity/dynamicGroup:DynamicGroup": {"name": "others"},
    "oci:Identity/policy:Policy": {"name": "others"},
    "oci:Artifacts/containerRepository:ContainerRepository": {"displayName": "vision/other"},
    "oci:ObjectStorage/storageObject:StorageObject": {"content": "print(2)"},
    "oci:Vault/secret:Secret": {"secretName": "other"},
    JOB: {"jobConfigurationDetails": {"jobType": "DEFAULT", "environmentVariables": {"A": "2"}}},
}
# Inputs for which a changed text, flag or number is not valid, and valid values for them.
_BLOCKS = ["10.0.0.0/16", "10.1.0.0/16"]  # a preview already refuses those that leave the subnet out
_OTHERWISE: Mapping[type, Any] = {str: "other", bool: None, int: 7, float: 7.0, list: ["other"], dict: {"other": "1"}}

Inputs = dict[str, dict[str, Any]]


class Changes:
    """The program beside this file on a cloud, with one resource of every type of the plugin."""

    def __init__(self, root: Path, cloud: Cloud) -> None:
        self.folder = root / "changes"
        shutil.copytree(PROGRAM, self.folder)
        (self.folder / ".venv").symlink_to(sys.prefix)
        more = {"PULUMI_OPTION_COLOR": "never", "GRPC_VERBOSITY": "NONE"}
        self.env = local_stack_environment(root / "home") | dict(cloud.env) | more
        self.pulumi("stack", "init", "dev")

    def attempt(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["pulumi", *words, "--non-interactive"], cwd=self.folder, env=self.env, capture_output=True, text=True,
            timeout=LONGEST_SECONDS,
        )  # fmt: skip

    def pulumi(self, *words: str) -> str:
        done = self.attempt(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, inputs: Inputs) -> None:
        (self.folder / "resources.json").write_text(json.dumps(inputs))

    def up(self, inputs: Inputs) -> dict[str, int]:
        self.write(inputs)
        return summary(self.pulumi("up", "--yes", "--skip-preview"))

    def predicted(self, inputs: Inputs) -> dict[str, str]:
        """The operation in a preview for the resource of each type."""
        self.write(inputs)
        steps = json.loads(self.pulumi("preview", "--json"))["steps"]
        ops = [(_token(step["urn"]), step["op"]) for step in steps]
        # As of the real plugin: names of inputs, and no sentences for people.
        keys = {key for step in steps for key in (*step.get("diffReasons", ()), *step.get("replaceReasons", ()))}
        assert all(key.isidentifier() for key in keys), keys
        assert not [path for step in steps for path in step.get("detailedDiff") or () if ": " in path]
        assert {op for _, op in ops} <= {"same", "update", "replace", "create-replacement", "delete-replaced"}
        said = {token: op for token, op in ops if op in ("update", "replace")}
        return {token: said.get(token, "same") for token in inputs}

    def rows(self) -> dict[str, dict[str, Any]]:
        state = json.loads(self.pulumi("stack", "export"))["deployment"]["resources"]
        made = [row for row in state if row.get("id")]
        assert len({row["urn"] for row in made}) == len(made), "no resource stands in a state twice"
        return {_token(row["urn"]): row for row in made}

    def ids(self) -> dict[str, str]:
        return {token: row["id"] for token, row in self.rows().items()}


def _token(urn: str) -> str:
    return urn.split("::")[2].split("$")[-1]


@pytest.fixture
def changes(tmp_path: Path, cloud: Cloud) -> Changes:
    return Changes(tmp_path, cloud)


def _inputs(cloud: Cloud, folder: Path) -> Inputs:
    """The cases of the plugin's own test, with references to the other resources of this program."""
    services = [{"id": one.id} for one in Clients(cloud).network.list_services().data]
    world: Any = SimpleNamespace(
        cloud=cloud,
        folder=folder,
        engine=SimpleNamespace(invoke=lambda token, args: {"services": services}),
        id=lambda token: {"id of": token},
        resource=lambda token: SimpleNamespace(outputs={"name": "data"}, id={"id of": token}),
    )
    made = {token: case.inputs(world) for token, case in CASES.items()}
    # By name, and after the bucket exists: its id ends with its name.
    made["oci:ObjectStorage/storageObject:StorageObject"]["metadata"] = {"bucket": {"id of": BUCKET}}
    return made


def _settled(inputs: Inputs, ids: Mapping[str, str]) -> Any:
    """References become ids, so that the change of one resource changes no other."""

    def settle(value: Any) -> Any:
        if isinstance(value, dict):
            return ids[value["id of"]] if "id of" in value else {key: settle(item) for key, item in value.items()}
        return [settle(item) for item in value] if isinstance(value, list) else value

    return settle(inputs)


def _fields(token: str, inputs: Mapping[str, Any]) -> list[str]:
    """The paths to change: every input, and those of the table that the plugin supports."""
    resource = LocalOci().resource(token)
    assert isinstance(resource, OciResource)
    named = resource_types_of_provider("oci")[token].replaced_by
    return sorted({*(path for path in named if path.split(".")[0] in resource.inputs_of_api()), *inputs})


def _forced(token: str, path: str) -> bool:
    """Whether the table has the path: a path in the table covers everything below it, and its addition and removal."""
    replacing = resource_types_of_provider("oci")[token].replaced_by
    return any(f"{path}.".startswith(f"{one}.") or f"{one}.".startswith(f"{path}.") for one in replacing)


def _changed(inputs: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The inputs with another value at the path, which is added if it is missing."""
    changed = deepcopy(dict(inputs))
    *above, last = path.split(".")
    holder = changed
    for step in above:
        holder = holder.setdefault(step, {})
    old = holder.get(last, "")
    new = _OTHERWISE[type(old)]
    new = _BLOCKS if path == "cidrBlocks" else new
    holder[last] = (not old) if isinstance(old, bool) else [] if new == old else new
    return changed


@pytest.mark.torture
def test_previews_replace_what_the_table_says_and_up_does_it(changes: Changes, cloud: Cloud, tmp_path: Path) -> None:
    written = _inputs(cloud, tmp_path)
    assert set(written) == set(SERVED_TYPES)
    assert changes.up(written)["created"] == len(written) + 1
    base = _settled(written, changes.ids())
    assert set(changes.predicted(base).values()) == {"same"}

    chance = random.Random(FIRST)
    paths = {token: chance.sample(fields, len(fields)) for token in base if (fields := _fields(token, base[token]))}
    for number in range(wanted(1, max(map(len, paths.values())))):
        taken = {token: fields[number % len(fields)] for token, fields in paths.items()}
        told = changes.predicted({token: _changed(base[token], path) for token, path in taken.items()})
        expected = {token: "replace" if _forced(token, path) else "update" for token, path in taken.items()}
        assert told == expected, {taken[token]: (told.get(token), expected[token]) for token in taken}

    updated = {token: {**inputs, **CASES[token].change} for token, inputs in base.items()}
    told = changes.predicted(updated)
    assert told == {token: "update" if CASES[token].change else "same" for token in base}
    done = changes.up(updated)
    assert done["updated"] == sum(op == "update" for op in told.values())
    assert "replaced" not in done

    before = changes.ids()
    replaced = {token: {**inputs, **REPLACED.get(token, {})} for token, inputs in updated.items()}
    told = changes.predicted(replaced)
    assert {token for token, op in told.items() if op == "replace"} == set(REPLACED)
    assert changes.up(replaced)["replaced"] == len(REPLACED)
    after = changes.ids()
    # An object is identified by its name, which stays.
    assert {token for token in base if before[token] != after[token]} == set(REPLACED) - {
        "oci:ObjectStorage/storageObject:StorageObject"
    }
    assert set(changes.predicted(replaced).values()) == {"same"}
    # A deleted original is not adopted either.
    held = Clients(cloud).storage.get_object(cloud.namespace, "data", "some/code.py")
    assert held.data.content == b"print(2)"


@pytest.mark.torture
def test_a_replacement_is_a_new_resource_and_a_killed_create_is_adopted(changes: Changes, cloud: Cloud) -> None:
    here = {"compartmentId": cloud.compartment}
    group = {
        "compartmentId": cloud.tenancy,
        "description": "runs",
        "name": "runs",
        "matchingRule": "ALL {resource.type='x'}",
    }
    written: Inputs = {VCN: {**here, "cidrBlocks": ["10.0.0.0/16"]}, PROJECT: here, GROUP: group}
    changes.up(written)
    before = changes.rows()
    # As after a kill between a creation and its record: the engine does not know the resource.
    changes.pulumi("state", "delete", before[PROJECT]["urn"], "--yes")
    assert changes.up(written)["created"] == 1
    assert changes.ids() == {token: row["id"] for token, row in before.items()}

    # The same for a replacement.
    known = changes.folder / "state.json"
    known.write_text(changes.pulumi("stack", "export"))
    anew = [word for token in (VCN, PROJECT) for word in ("--replace", before[token]["urn"])]
    fault = admin.add_fault(cloud, "status", operations="DeleteProject", status=409)
    assert changes.attempt("up", "--yes", "--skip-preview", *anew).returncode
    admin.clear_faults(cloud, fault["id"])
    state = json.loads(changes.pulumi("stack", "export"))["deployment"]["resources"]
    (made,) = [row["id"] for row in state if row["type"] == PROJECT and not row.get("delete")]
    changes.pulumi("stack", "import", "--file", str(known))
    changes.pulumi("up", "--yes", "--skip-preview", *anew)
    after = changes.rows()
    assert {token for token in written if after[token]["id"] != before[token]["id"]} == {VCN, PROJECT}
    assert after[PROJECT]["id"] == made
    assert summary(changes.pulumi("refresh", "--yes"))["unchanged"] == len(written) + 1

    # Two groups cannot have the same name, and the engine makes the new one first. Nothing is lost, and the suggested
    # remedy works.
    refused = changes.attempt("up", "--yes", "--skip-preview", "--replace", after[GROUP]["urn"])
    assert "409 NotAuthorizedOrResourceAlreadyExists" in refused.stdout
    way_out = ["destroy", "--stack", "dev", "--target", after[GROUP]["urn"], "--target-dependents"]
    assert f"`{shlex.join(['pulumi', *way_out])}`" in refused.stdout
    assert summary(changes.pulumi("refresh", "--yes"))["unchanged"] == len(written) + 1
    changes.pulumi(*way_out, "--yes", "--skip-preview")
    assert changes.up(written)["created"] == 1


@pytest.mark.torture
def test_versioning_can_be_suspended_but_not_turned_off(changes: Changes, cloud: Cloud) -> None:
    bucket = {"compartmentId": cloud.compartment, "namespace": cloud.namespace, "name": "data"}
    changes.up({BUCKET: {**bucket, "versioning": "Enabled"}})
    changes.write({BUCKET: {**bucket, "versioning": "Disabled"}})
    refused = changes.attempt("up", "--yes", "--skip-preview")
    assert refused.returncode != 0
    assert "OCI can suspend a bucket's versioning, but not turn it off" in refused.stdout
    assert "versioning: suspended" in refused.stdout
    assert changes.up({BUCKET: {**bucket, "versioning": "Suspended"}})["updated"] == 1
    found = Clients(cloud).storage.get_bucket(cloud.namespace, "data").data
    assert found.versioning == "Suspended"
