# SPDX-License-Identifier: Apache-2.0
"""The protocol over a real channel, for a small provider whose resources are files in a folder."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pulumi.runtime.proto import provider_pb2

from components.platform.calls import Call, Cancelled, InputFailure, PartialFailureError, ProviderError
from components.platform.values import UNKNOWN, DiffRules, Properties, Secret
from provider.base.resource import CheckedInputs, CreatedResource, Function, LiveResource, Plugin, ProviderResource
from tests.support.hostile import PLANTED, orders
from tests.support.provider_client import EngineSide, Failed, engine_side
from tests.support.waiting import eventually

TOKEN = "files:index:File"


class File(ProviderResource):
    rules = DiffRules(replace=frozenset({"name"}))
    secret_outputs = frozenset({"token"})

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.anew: list[bool] = []

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        failures = () if new.get("name") else (InputFailure("name", f"`name` is missing beside {new.get('text')}"),)
        return CheckedInputs({"mode": "plain", **new}, failures)

    def create(self, call: Call, inputs: Properties) -> CreatedResource:
        self.anew.append(call.anew)
        path = self._folder / inputs["name"]
        if inputs.get("text") == "refused":
            raise ProviderError("No room.", "Make some.")
        path.write_text(inputs.get("text", ""))
        call.report.info(f"wrote {inputs.get('text')}")
        outputs = {**inputs, "token": "t", "size": path.stat().st_size}
        if inputs.get("wait"):
            try:
                call.stop.wait(60)
            except Cancelled as cancelled:
                raise PartialFailureError(str(path), outputs, "Stopped half way.", cancelled.remedy) from None
        if inputs.get("broken"):
            raise KeyError(inputs["text"])
        return CreatedResource(str(path), outputs)

    def read(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> LiveResource | None:  # noqa: A002
        path = Path(id)
        if not path.exists():
            return None
        live = {**inputs, "name": path.name, "text": path.read_text()}
        return LiveResource(id, {**outputs, **live}, live)

    def update(self, call: Call, id: str, outputs: Properties, old: Properties, new: Properties) -> Properties:  # noqa: A002
        Path(id).write_text(new["text"])
        return {**outputs, **new}

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        Path(id).unlink(missing_ok=True)


class Files(Plugin):
    name = "files"
    version = "1.2.3"

    def __init__(self, folder: Path) -> None:
        self.file = File(folder)
        self.config: Properties = {}

    def configure(self, config: Properties) -> None:
        self.config = config

    def resource(self, token: str) -> ProviderResource | None:
        return self.file if token == TOKEN else None

    def function(self, token: str) -> Function | None:
        return (lambda args: {"echo": args.get("text")}) if token == "files:index:echo" else None


@pytest.fixture
def plugin(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def engine(plugin: Files) -> Iterator[EngineSide]:
    with engine_side(plugin) as client:
        yield client


def test_a_resource_is_created_diffed_updated_and_deleted(engine: EngineSide, tmp_path: Path) -> None:
    made = engine.create(TOKEN, "a", {"name": "a", "text": "one"})
    assert made.outputs["size"] == 3
    assert made.outputs["mode"] == "plain"
    assert engine.diff(made, {"name": "a", "text": "one"}).changes == 1
    changed = engine.update(made, {"name": "a", "text": "two"})
    assert (tmp_path / "a").read_text() == "two"
    assert engine.refresh(changed) is not None
    engine.delete(changed)
    assert engine.refresh(changed) is None


def test_a_change_of_the_name_replaces(engine: EngineSide) -> None:
    made = engine.create(TOKEN, "a", {"name": "a", "text": "one"})
    diff = engine.diff(made, {"name": "b", "text": "two"})
    assert list(diff.replaces) == ["name"]
    # Each with the sentence that the engine's view of one line shows; the key alone would only be said twice.
    assert sorted(diff.detailedDiff) == ['["name: a -> b"]', '["text: one -> two"]', "name", "text"]
    assert sorted(diff.diffs) == ['["name"]', '["text"]', "name: a -> b", "text: one -> two"]


def test_a_diff_for_programs_has_only_properties(engine: EngineSide, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the plugins of real clouds: top-level names, paths in the details, an element of an unordered list alone."""
    monkeypatch.setattr(Files, "diffs_for_people", lambda plugin: False)
    monkeypatch.setattr(File, "rules", DiffRules(frozenset({"deep.leaf"}), unordered=frozenset({"rules"})))
    given = {"name": "a", "text": "one", "deep": {"leaf": "x"}, "rules": [{"to": "a"}, {"to": "b"}, {"to": "c"}]}
    made = engine.create(TOKEN, "a", given)
    rules = [{"to": "b"}, {"to": "d"}, {"to": "a"}, {"to": "e"}]
    diff = engine.diff(made, {**given, "text": "two", "deep": {}, "rules": rules})
    assert (list(diff.replaces), list(diff.diffs)) == (["deep"], ["deep", "rules", "text"])
    kinds = provider_pb2.PropertyDiff
    assert {path: row.kind for path, row in diff.detailedDiff.items()} == {
        "deep.leaf": kinds.DELETE_REPLACE, "text": kinds.UPDATE,
        "rules[1]": kinds.ADD, "rules[2]": kinds.DELETE, "rules[3]": kinds.ADD,
    }  # fmt: skip


def test_import_reads_what_is_there(engine: EngineSide, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("there")
    found = engine.import_(TOKEN, "b", str(tmp_path / "b"))
    assert found is not None
    assert found.inputs == {"name": "b", "text": "there"}


def test_secret_inputs_are_secret_outputs(engine: EngineSide) -> None:
    made = engine.create(TOKEN, "a", {"name": "a", "text": Secret("hush-hush")})
    assert made.outputs["text"] == Secret("hush-hush")
    assert made.outputs["token"] == Secret("t")
    assert engine.heard.lines == ["wrote [secret]"]
    read = engine.refresh(made)
    assert read is not None
    assert read.inputs["text"] == Secret("hush-hush")
    assert engine.invoke("files:index:echo", {"text": Secret("hush-hush")})["echo"] == Secret("hush-hush")


def test_failures_and_errors_hide_secrets(engine: EngineSide) -> None:
    assert engine.check(TOKEN, "a", {"text": Secret("hush-hush")})[1] == ["name: `name` is missing beside [secret]"]
    with pytest.raises(Failed) as bug:
        engine.create(TOKEN, "a", {"name": "a", "text": Secret("hush-hush"), "broken": True})
    assert "hush-hush" not in str(bug.value)
    assert "bug in the provider" in str(bug.value)


def test_nothing_that_the_engine_is_told_gives_orders(engine: EngineSide) -> None:
    """Values, and what a cloud or a script said: the engine prints them as they are."""
    _, failures = engine.check(TOKEN, "a", {"text": PLANTED})
    made = engine.create(TOKEN, "a", {"name": "a", "text": PLANTED})
    diff = engine.diff(made, {"name": "a", "text": f"{PLANTED}{PLANTED}"})
    with pytest.raises(Failed) as bug:
        engine.create(TOKEN, "b", {"name": "b", "text": PLANTED, "broken": True})
    told = [*failures, *engine.heard.lines, *diff.diffs, str(bug.value)]
    assert len(engine.heard.lines) == 2
    assert sum("planted" in line for line in told) == len(told) - 1, "all but the path of the property"
    assert [line for line in told if orders(line.encode())] == []


def test_an_expected_failure_is_cause_and_remedy(engine: EngineSide) -> None:
    with pytest.raises(Failed) as failed:
        engine.create(TOKEN, "a", {"name": "a", "text": "refused"})
    assert str(failed.value) == "No room.\nMake some."
    assert failed.value.kept is None


def test_a_preview_makes_nothing(engine: EngineSide, tmp_path: Path) -> None:
    assert engine.preview(TOKEN, "a", {"name": "a", "text": UNKNOWN})["text"] is UNKNOWN
    assert not list(tmp_path.iterdir())


def test_cancel_cuts_a_wait_short_and_loses_nothing(engine: EngineSide) -> None:
    caught: list[Failed] = []

    def create() -> None:
        with pytest.raises(Failed) as failed:
            engine.create(TOKEN, "a", {"name": "a", "text": "one", "wait": True})
        caught.append(failed.value)

    worker = threading.Thread(target=create)
    worker.start()
    assert engine.heard.said.wait(20)
    engine.cancel()
    worker.join(20)
    assert not worker.is_alive()
    assert caught[0].kept is not None
    assert caught[0].kept.outputs["size"] == 3


def test_the_same_again_is_told_from_the_first_time(engine: EngineSide, plugin: Files) -> None:
    made = engine.create(TOKEN, "a", {"name": "a", "text": "one"})
    engine.create(TOKEN, "a", {"name": "a", "text": "two"}, old=made.inputs)
    engine.create(TOKEN, "a", {"name": "a", "text": "one"}, old=made.inputs)
    assert plugin.file.anew == [False, False, True]


def test_unknown_types_and_functions_are_named(engine: EngineSide) -> None:
    with pytest.raises(Failed, match="does not know the type `files:index:Nothing`"):
        engine.create("files:index:Nothing", "a", {})
    with pytest.raises(Failed, match="has no function `files:index:nothing`"):
        engine.invoke("files:index:nothing", {})


def test_configuration_that_is_not_known_yet_is_left_out(engine: EngineSide, plugin: Files) -> None:
    engine.configure(region="r", profile=UNKNOWN, key=Secret("k"))
    assert plugin.config == {"region": "r", "key": "k"}


def test_a_plugin_ends_with_its_parent(tmp_path: Path) -> None:
    """The engine was killed: its plugin sees it and goes, by itself."""
    parent = "import subprocess,sys,time\np=subprocess.Popen([sys.executable,'provider'],stdout=subprocess.PIPE)\n"
    parent += "p.stdout.readline()\nprint(p.pid,flush=True)\ntime.sleep(60)"
    engine = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True)
    try:
        assert engine.stdout is not None
        child = int(engine.stdout.readline())
    finally:
        engine.kill()
        engine.communicate()
    eventually(lambda: not _alive(child))


def test_a_plugin_starts_without_the_sdks(tmp_path: Path) -> None:
    code = "import sys, provider.plugin, provider.base.serve; print({'pulumi', 'oci'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
