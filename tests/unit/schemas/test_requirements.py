# SPDX-License-Identifier: Apache-2.0
"""A requirements file is hostile input: packages come through, and nothing that runs code, leaves the folder, or takes
packages from where nobody said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.requirements import PackageList, read_requirements

HASH = "a" * 64


def read(folder: Path, text: str | bytes, *build: str) -> PackageList:
    file = folder / "req.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_requirements(file, "./req.txt", folder, build)


@pytest.mark.parametrize(
    ("line", "why", "remedy"),
    [
        ("-e .", "`-e` is an option", "code folder"),
        ("-e.", "`-e.` is an option", "code folder"),
        ("--editable=../other", "`--editable` is an option", "code folder"),
        ("-i https://index.example.com", "`-i` is an option", "pip config set global.index-url"),
        ("--index-url=https://u:pw@index.example.com", "`--index-url` is an option", "credentials belong"),
        ("-ihttps://u:pw@x.example.com/simple", "`-ihttps://…@x.example.com/simple`", "pip config set"),
        ("--extra-index-url https://x", "`--extra-index-url`", "pip config set global.extra-index-url"),
        ("--trusted-host x", "`--trusted-host`", "pip config set global.trusted-host"),
        ("-f /wheels", "`-f`", "pip config set global.find-links"),
        ("--no-binary :all:", "`--no-binary`", "build: [NAME]"),
        ("-c constraints.txt", "`-c`", "write the versions"),
        ("--config-settings=x", "`--config-settings`", "remove it"),
        ("./wheels/x.whl", "is a path", "find-links"),
        ("../other", "is a path", "find-links"),
        ("/root/x-1.0-py3-none-any.whl", "is a path", "find-links"),
        ("C:\\wheels\\x.whl", "is a path", "find-links"),
        ("x.whl", "is a path", "find-links"),
        ("x.tar.xz[extra]", "is a path", "find-links"),
        ("x.ZIP >= 1", "is a path", "find-links"),
        ("file:///root/x.whl", "is a path", "find-links"),
        ("x @ file:///root/x.whl", "is not an address with https", "index"),
        ("git+https://example.com/x.git", "code from a repository", "wheel"),
        ("x @ git+ssh://git@example.com/x.git@main", "code from a repository", "wheel"),
        ("x @ http://example.com/x.whl", "is not an address with https", "index"),
        ("x @ https://example.com/x.whl", "an address without a hash", "--hash=sha256"),
        (f"x @ https://u:pw@example.com/x.whl#sha256={HASH}", "holds credentials", "configuration"),
        (f"x @ https://example.com/x.tar.gz#sha256={HASH}", "is not a wheel", "build: [x]"),
        ("x @ https://example.com/${HOME}.whl", "from the environment", "value itself"),
        ("x==1.0 --hash=md5:abc", "is not a hash", "sha256"),
        ("x y z", "is not a package", "name==1.0"),
        ("x==1.0; import os", "is not a package", "name==1.0"),
        ("x --global-option=--evil", "is not a package", "name==1.0"),
        ("\x1b[2Jx", "is not a package", "name==1.0"),
        ("-r https://example.com/req.txt", "leads to another place", "into this file"),
    ],
)
def test_a_line_that_is_more_than_a_package_is_refused(tmp_path: Path, line: str, why: str, remedy: str) -> None:
    packages = read(tmp_path, f"# first\nnumpy\n{line}\n")
    [problem] = [one for one in packages.problems if one.code == "TY841"]
    assert (problem.file, problem.line) == ("./req.txt", 3)
    assert why in problem.message
    assert remedy in problem.remedy
    assert "pw" not in problem.message, "credentials are not shown"
    assert [each.text for each in packages.lines] == ["numpy"]


def test_what_pip_gets_holds_judged_lines_below_options_of_ours(tmp_path: Path) -> None:
    text = (
        "\ufeff# packages\r\n--require-hashes\nNumPy>=1.26,<3 \\\n  --hash=sha256:" + HASH + "  # pinned\n"
        f"scikit_learn[extra] == 1.5 ; python_version >= '3.9' --hash sha256:{HASH}\n"
        f"x @ https://example.com/x-1.whl#sha256={HASH}\n"
    )
    packages = read(tmp_path, text, "Scikit.Learn")
    assert packages.problems == ()
    assert packages.text.splitlines() == [
        "--only-binary :all:",
        "--no-binary scikit-learn",
        "--require-hashes",
        f"numpy<3,>=1.26 --hash=sha256:{HASH}",
        f'scikit-learn[extra]==1.5 ; python_version >= "3.9" --hash=sha256:{HASH}',
        f"x @ https://example.com/x-1.whl#sha256={HASH}",
    ]
    assert packages.places == ("", "", "", "./req.txt:3", "./req.txt:5", "./req.txt:6")


def test_a_comment_or_another_name_of_the_file_is_the_same_packages(tmp_path: Path) -> None:
    first = read(tmp_path, "numpy>=1 # fast\n")
    (tmp_path / "other.txt").write_text("numpy >= 1\n")
    assert read_requirements(tmp_path / "other.txt", "other.txt", tmp_path, ()).digest == first.digest
    assert read(tmp_path, "numpy>=2\n").digest != first.digest


def test_hashes_are_for_all_packages_or_none(tmp_path: Path) -> None:
    [problem] = read(tmp_path, f"a==1 --hash=sha256:{HASH}\nb==1\n").problems
    assert (problem.code, problem.line) == ("TY842", 2)


def test_a_package_to_build_is_one_of_the_file(tmp_path: Path) -> None:
    [problem] = read(tmp_path, "a\n", "b").problems
    assert problem.code == "TY843"


def test_other_files_are_read_within_the_folder_alone(tmp_path: Path) -> None:
    folder, outside = tmp_path / "code", tmp_path / "outside.txt"
    (folder / "more").mkdir(parents=True)
    outside.write_text("stolen\n")
    (folder / "more" / "base.txt").write_text("-r ../req.txt\nscipy\n")
    (folder / "link.txt").symlink_to(outside)
    os.mkfifo(folder / "pipe.txt")
    (folder / "req.txt").write_text(
        "-r more/base.txt\n-r link.txt\n-r ../outside.txt\n--requirement=/etc/passwd\n-r pipe.txt\n-r more\nnumpy\n"
    )
    packages = read_requirements(folder / "req.txt", "code/req.txt", tmp_path, ())
    assert packages.names == {"scipy", "numpy"}
    assert [(one.code, one.file) for one in packages.problems] == [
        ("TY840", "code/link.txt"),
        ("TY840", "code/../outside.txt"),
        ("TY840", "/etc/passwd"),
        ("TY840", "code/pipe.txt"),
        ("TY840", "code/more"),
    ]
    assert packages.lines[0].file == "code/more/base.txt"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"#" * 1_000_001, None])
def test_what_is_no_list_of_packages_is_said(tmp_path: Path, content: bytes | None) -> None:
    packages = read_requirements(tmp_path / "a\0b", "a", tmp_path, ()) if content is None else read(tmp_path, content)
    assert [problem.code for problem in packages.problems] == ["TY840"]
    assert packages.lines == ()


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("ab-=rei#@:/.\\ \n\"';[]<>!~${}%\t\0\u2028git+http"), max_size=60))
def test_no_content_makes_it_raise_or_gives_pip_an_option(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("req", numbered=True)
    packages = read(folder, text)
    given_lines = packages.text.splitlines()[1:]
    assert len(given_lines) == len(packages.lines)
    assert not any(line.startswith(("-", ".", "/")) or "${" in line for line in given_lines)
