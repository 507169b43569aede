# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from trainyard.engine.obtain import local_stack_environment
from trainyard.engine.tools import (
    LANGUAGE_HOST,
    OWN_LANGUAGE_HOST,
    TRAMPOLINE,
    StandIn,
    is_trampoline,
    plugin_path,
    script_for,
    stand_ins,
    tools_home,
    write_script,
    write_tools,
    write_trampoline,
)
from trainyard.engine.versions import EngineError


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def plugin_of(home: Path, stand_in: StandIn) -> Path:
    path = plugin_path(home, stand_in)
    assert path is not None
    return path


EACH = pytest.mark.parametrize("stand_in", stand_ins(), ids=lambda stand_in: stand_in.provider)


@EACH
def test_an_engine_with_its_own_language_host_gets_only_the_plugins(machine: Any, stand_in: StandIn) -> None:
    machine.program("pulumi", "echo v3.999.0")
    machine.program(LANGUAGE_HOST, "exit 0")
    assert names(write_tools(machine.root / "home", machine.path, machine.env)) == []
    assert os.access(plugin_of(machine.root / "home", stand_in), os.X_OK)


@EACH
def test_a_plugin_is_of_the_version_that_programs_ask_for(machine: Any, stand_in: StandIn) -> None:
    """It must not be on PATH: the engine would use it, but with a warning at every step."""
    (machine.root / "home" / "bin").mkdir(parents=True)
    (machine.root / "home" / "bin" / stand_in.program).write_text("left by an earlier release")
    assert stand_in.program not in names(write_tools(machine.root / "home", machine.path, machine.env))
    folder = plugin_of(machine.root / "home", stand_in).parent.name
    assert folder == f"resource-{stand_in.provider}-v{version(stand_in.package)}"


def test_without_its_sdk_no_plugin_is_needed(tmp_path: Path) -> None:
    assert plugin_path(tmp_path, StandIn("none", "pulumi_of_nobody", "nothing", "NONE")) is None


def test_a_language_host_elsewhere_on_path_is_left_to_work(machine: Any, tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.mkdir()
    machine.program(LANGUAGE_HOST, "exit 0")
    assert names(write_tools(machine.root / "home", engine, machine.env)) == []


def test_an_engine_without_a_language_host_gets_ours(machine: Any) -> None:
    folder = write_tools(machine.root / "home", machine.path, machine.env)
    assert names(folder) == [LANGUAGE_HOST, OWN_LANGUAGE_HOST]
    # With its own folder on PATH, as in a shell set up for local stacks, nothing changes.
    again = machine.env | {"PATH": f"{folder}:{machine.env['PATH']}"}
    assert names(write_tools(machine.root / "home", machine.path, again)) == names(folder)


def test_our_language_host_is_removed_if_pulumis_own_is_installed(machine: Any) -> None:
    folder = write_tools(machine.root / "home", machine.path, machine.env)
    machine.program(LANGUAGE_HOST, "exit 0")
    write_tools(machine.root / "home", machine.path, machine.env)
    assert names(folder) == []


@EACH
def test_an_unknown_choice_of_plugin_is_refused(machine: Any, stand_in: StandIn) -> None:
    with pytest.raises(EngineError, match=f"{stand_in.variable} is 'Real': write `real`"):
        write_tools(machine.root / "home", machine.path, machine.env | {stand_in.variable: "Real"})


@EACH
def test_the_real_plugin_is_kept_if_wanted(machine: Any, stand_in: StandIn) -> None:
    write_tools(machine.root / "home", machine.path, machine.env)
    home, real = machine.root / "home", machine.env | {stand_in.variable: "real"}
    write_tools(home, machine.path, real)
    plugin = plugin_of(home, stand_in)
    assert not plugin.parent.exists()
    plugin.parent.mkdir(parents=True)
    plugin.write_text("Pulumi's own, installed")
    write_tools(home, machine.path, real)
    assert plugin.exists(), "what Pulumi installed there is not ours to remove"


def test_a_built_engine_runs_the_host_of_the_checkout_it_is_called_through(machine: Any) -> None:
    write_trampoline(machine.path / LANGUAGE_HOST)
    folder = write_tools(machine.root / "home", machine.path, machine.env)
    # Pulumi warns unless the plugin on PATH is the one beside it.
    assert (folder / LANGUAGE_HOST).resolve() == machine.path / LANGUAGE_HOST
    write_script(folder / OWN_LANGUAGE_HOST, '#!/bin/sh\necho ours "$@"\n')
    called = subprocess.run([folder / LANGUAGE_HOST, "address"], capture_output=True, text=True, check=True)
    assert called.stdout == "ours address\n"
    alone = subprocess.run([machine.path / LANGUAGE_HOST], capture_output=True, text=True, check=False)
    assert alone.returncode == 1
    assert "python -m trainyard.engine tools" in alone.stderr


def test_a_script_runs_this_checkout_and_changes_nothing_for_its_children(tmp_path: Path) -> None:
    write_script(tmp_path / "versions", script_for("trainyard.engine.versions"))
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "versions.py").write_text("raise SystemExit('the wrong engine')")
    assert "PYTHONPATH" not in (tmp_path / "versions").read_text()
    subprocess.run([tmp_path / "versions"], cwd=tmp_path, check=True)


def test_trainyard_home_moves_everything(tmp_path: Path) -> None:
    assert tools_home({"TRAINYARD_HOME": str(tmp_path)}) == tmp_path
    assert tools_home({}).name == ".trainyard"


def test_local_stacks_have_their_own_backend(machine: Any) -> None:
    machine.program("pulumi", "echo v3.999.0")
    home = machine.root / "home"
    mine = machine.env | {"PULUMI_CONFIG_PASSPHRASE": "mine", "PULUMI_ACCESS_TOKEN": "mine", "PULUMI_STACK": "prod"}
    env = local_stack_environment(home, mine)
    assert "mine" not in env.values()
    assert "PULUMI_STACK" not in env
    assert env["PATH"].split(":")[:2] == [str(home / "bin"), str(machine.path)]
    assert env["PULUMI_BACKEND_URL"] == (home / "pulumi" / "state").as_uri()
    passphrase = Path(env["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert passphrase.stat().st_mode & 0o077 == 0
    before = passphrase.read_text()
    assert len(before.strip()) >= 32
    local_stack_environment(home, mine)
    assert passphrase.read_text() == before
    assert (home / "pulumi").stat().st_mode & 0o777 == 0o700
    assert names(home / "pulumi") == ["passphrase", "plugins", "state"]


def test_other_accounts_cannot_read_states(machine: Any) -> None:
    """Also those that an earlier release left open."""
    machine.program("pulumi", "echo v3.999.0")
    home = machine.root / "home"
    kept = home / "pulumi" / "state" / ".pulumi" / "stacks" / "trainyard"
    kept.mkdir(parents=True, mode=0o755)
    elsewhere = machine.root / "elsewhere"
    elsewhere.write_text("not ours")
    (kept / "link.json").symlink_to(elsewhere)
    for path in (home / "pulumi", kept.parent, kept):
        path.chmod(0o755)
    for path in (kept / "local.json", elsewhere):
        path.write_text("{}")
        path.chmod(0o644)
    local_stack_environment(home, machine.env)
    open_still = [path for path in (home / "pulumi", *kept.parents[2].rglob("*")) if path.lstat().st_mode & 0o077]
    assert [path for path in open_still if not path.is_symlink()] == []
    assert elsewhere.stat().st_mode & 0o777 == 0o644
    assert (kept / "local.json").stat().st_mode & 0o777 == 0o600


def test_other_accounts_cannot_enter_the_folder_of_local_stacks(machine: Any) -> None:
    """States contain everything of a stack except its secrets, and the passphrase decrypts these."""
    machine.program("pulumi", "echo v3.999.0")
    home = machine.root / "home"
    for _ in ("a new folder", "one of an earlier release"):
        local_stack_environment(home, machine.env)
        assert (home / "pulumi").stat().st_mode & 0o077 == 0
        (home / "pulumi").chmod(0o755)


def test_the_trampoline_of_another_release_is_recognized(tmp_path: Path) -> None:
    """Releases share the cache with the engine: taking the script of another for a host of the engine's own would leave
    every program without Python."""
    script = tmp_path / "pulumi-language-python"
    script.write_text(TRAMPOLINE.replace("this engine has no Python", "that engine knew no Python"))
    assert is_trampoline(script)
    script.write_text("#!/bin/sh\nexec a-host-of-its-own\n")
    assert not is_trampoline(script)
