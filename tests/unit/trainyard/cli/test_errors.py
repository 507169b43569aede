# SPDX-License-Identifier: Apache-2.0
import errno
from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from trainyard.cli.errors import _IN_WORDS, INTERRUPTED, ErrorReportingGroup, ResultCommand, error_message


@pytest.mark.parametrize("name", sorted(_IN_WORDS))
def test_errors_for_users_are_shown_as_they_are(name: str) -> None:
    module, _, kind = name.rpartition(".")
    error = getattr(import_module(module), kind)
    assert error_message(error("the reason")) == "the reason"
    assert error_message(type("Narrower", (error,), {})("the reason")) == "the reason"


def test_a_bug_has_no_message_for_users() -> None:
    assert error_message(KeyError("x")) is None
    with pytest.raises(KeyError):
        _invoke(KeyError("x"))


def test_a_folder_newer_than_the_environment_is_reported_with_a_remedy() -> None:
    """A user pulls a release with a new folder of modules, and runs a command without `make`."""
    assert "make setup" in (error_message(ModuleNotFoundError(name="schemas")) or "")
    assert error_message(ModuleNotFoundError(name="nowhere")) is None, "a library that is missing is shown as it is"
    assert error_message(ModuleNotFoundError(name="schemas.nowhere")) is None, "a mistake of ours"


@pytest.mark.parametrize("problem", [click.ClickException("no cloud runs"), OSError(errno.ENOENT, "no such", "/tmp")])
def test_a_command_whose_result_is_1_fails_with_2(problem: Exception) -> None:
    assert _invoke(problem)[0] == 1
    assert _invoke(problem, cls=ResultCommand)[0] == 2


def _invoke(problem: BaseException, cls: type[click.Command] = click.Command) -> tuple[int, str]:
    group = ErrorReportingGroup("group")

    @group.command(cls=cls)
    def ends() -> None:
        raise problem

    result = CliRunner(catch_exceptions=False).invoke(group, ["ends"])
    return result.exit_code, result.output


def test_each_kind_of_failure_has_its_exit_code_and_message() -> None:
    unreadable = OSError(errno.EACCES, "Permission denied", "/there/state.json")
    code, said = _invoke(unreadable)
    assert (code, "/there/state.json: Permission denied; TRAINYARD_HOME" in said) == (1, True)
    assert _invoke(KeyboardInterrupt()) == (INTERRUPTED, "")
    assert _invoke(click.ClickException("as said")) == (1, "Error: as said\n")


def test_a_path_that_no_system_takes_is_not_repeated() -> None:
    told = error_message(OSError(errno.ENAMETOOLONG, "File name too long", "x" * 5000)) or ""
    assert told == f"{'x' * 80}…: no name of a file or folder can be that long"
