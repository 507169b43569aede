# SPDX-License-Identifier: Apache-2.0
"""`trainyard check` as a command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from schemas.judge import titles_by_code
from tests.support.broken_files import FOLDER, Expected, expected, files, folders
from tests.support.examples import SMALLEST
from trainyard.cli.main import main

ROOT = Path(__file__).parents[2]


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)], catch_exceptions=False)


def in_a_process(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainyard", "check", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "Pulumi.good.yaml"
    file.write_text(SMALLEST)
    return file


def test_stacks_are_checked_by_their_names(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.bad.yaml").write_text(SMALLEST.replace("vision", "Vision"))
    by_names = check("good", "bad", "--stacks", tmp_path)
    assert by_names.exit_code == 1
    assert by_names.stdout == check(good, tmp_path / "Pulumi.bad.yaml").stdout
    unknown = check("god", "--stacks", tmp_path)
    assert (unknown.exit_code, "did you mean `good`?" in unknown.output) == (2, True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good").mkdir()  # a folder beside it does not stand in a stack's way, but a file is taken as it is
    assert check("good", "--stacks", tmp_path).exit_code == 0
    (tmp_path / "plain").write_text("trainyard: [")
    assert "plain:2" in check("plain", "--stacks", tmp_path).output


def _matches(finding: dict[str, object], wanted: Expected) -> bool:
    same = finding["code"] == wanted.code and finding["line"] == wanted.line
    return same and wanted.remedy.casefold() in str(finding["remedy"]).casefold()


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_a_broken_file_gets_exactly_its_expected_findings(file: Path) -> None:
    result = check("--format", "json", "--strict", file)
    found = json.loads(result.stdout)["findings"]
    wanted = expected(file)
    assert wanted
    assert result.exit_code == any(finding["severity"] != "note" for finding in found), "a note asks for nothing"
    assert Counter(finding["code"] for finding in found) == Counter(one.code for one in wanted), found
    for one in wanted:
        assert any(_matches(finding, one) for finding in found), (one, found)


NOBODYS = (
    "config: [\n",
    "config: {}\n",
    "\tconfig:\n",
    "config:\n  trainyard:team: vision\n  trainyard:environment: dev\n",
)


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_checking_one_file_reads_its_neighbours_without_reporting_on_them(folder: Path, tmp_path: Path) -> None:
    """Nothing is reported about the other files, even if they are broken or no files."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for index, text in enumerate(NOBODYS):
        (tmp_path / f"Pulumi.broken-{index}.yaml").write_text(text)
    (tmp_path / "Pulumi.latin-1.yaml").write_bytes(b"config: \xe4 vision dev\n")
    (tmp_path / "Pulumi.a-folder.yaml").mkdir()
    (tmp_path / "Pulumi.dangling.yaml").symlink_to("nowhere")
    os.mkfifo(tmp_path / "Pulumi.pipe.yaml")
    asked = tmp_path / "Pulumi.asked.yaml"
    result = check("--format", "json", "--strict", asked)
    listed, (wanted,) = json.loads(result.stdout), expected(asked)
    (finding,) = listed["findings"]
    assert _matches(finding, wanted), finding
    assert listed["files"] == [str(asked)] == [finding["file"]]
    assert result.exit_code == (0 if finding["severity"] == "note" else 1)
    for form in ("sarif", "github"):
        shown = check("--format", form, asked).stdout
        assert str(asked) in shown
        assert "Pulumi.broken" not in shown
    alone = tmp_path / "alone" / "Pulumi.asked.yaml"
    alone.parent.mkdir()
    shutil.copy(asked, alone)
    assert check("--strict", alone).exit_code == 0


def test_at_least_forty_files_are_broken() -> None:
    assert len(files()) >= 40


def test_every_code_is_raised_by_a_broken_file_or_a_test_of_its_own() -> None:
    asked = (folder / "Pulumi.asked.yaml" for folder in folders())
    raised = {one.code for file in (*files(), *asked) for one in expected(file)}
    # Other tests cover a missing file, a file that is too large for a repository, a platform without deployment, values
    # of the stack in Pulumi.yaml, and what converted files have.
    others = {"TY0000", "TY001", "TY017", "TY806", "TY879", "TY883", "TY902", "TY4002", "TY6000", "TY8003"}
    assert set(titles_by_code()) - raised == others


def test_all_findings_of_all_files_are_reported_at_once(good: Path) -> None:
    result = check(good, FOLDER / "latest.yaml", FOLDER / "two-mains.yaml")
    assert result.exit_code == 1
    assert "TY302" in result.output
    assert "TY404" in result.output
    assert result.output.rstrip().endswith("3 files checked: 1 error, 7 warnings")


def stack_of(folder: Path, name: str, *lines: str, team: str = "vision") -> Path:
    file = folder / f"Pulumi.{name}.yaml"
    file.write_text(SMALLEST.replace("vision\n", f"{team}\n", 1) + "".join(f"  {line}\n" for line in lines))
    return file


def found(*files: Path) -> list[tuple[str, str, int]]:
    listed = json.loads(check("--format", "json", *files).stdout)["findings"]
    return [(finding["code"], Path(finding["file"]).name, finding["line"]) for finding in listed]


def test_two_stacks_with_the_same_names_are_reported(tmp_path: Path) -> None:
    one, copy = stack_of(tmp_path, "one"), stack_of(tmp_path, "copy")
    assert found(one, copy) == [
        ("TY615", "Pulumi.copy.yaml", 1),
        ("TY615", "Pulumi.copy.yaml", 1),
        ("TY615", "Pulumi.copy.yaml", 4),
    ]
    assert found(copy) == [
        (code, "Pulumi.copy.yaml", line) for code, line in (("TY615", 1), ("TY615", 1), ("TY615", 4))
    ]
    assert [name for _, name, _ in found(one)] == ["Pulumi.one.yaml"] * 3
    copy.unlink()
    assert found(one, one, one) == []
    assert found(one, stack_of(tmp_path, "other", team="audio")) == []
    bucket = "trainyard:bucket: { name: shared-data }"
    assert found(stack_of(tmp_path, "a", bucket, team="a"), stack_of(tmp_path, "b", bucket, team="b")) == [
        ("TY615", "Pulumi.b.yaml", 8)
    ]
    (tmp_path / "Pulumi.b.yaml").unlink()
    existing = "trainyard:bucket: { existing: shared-data }"
    assert found(stack_of(tmp_path, "a", bucket, team="a"), stack_of(tmp_path, "c", existing, team="c")) == []


def test_two_versions_of_one_stack_do_not_clash(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    assert found(stack_of(tmp_path, "one"), stack_of(tmp_path / "before", "one")) == []


def test_overlapping_subnets_of_one_network_are_reported(tmp_path: Path) -> None:
    def subnet(name: str, block: str) -> Path:
        vcn = "vcn: ocid1.vcn.oc1.iad.aaaa, routeTable: ocid1.routetable.oc1.iad.aaaa"
        return stack_of(tmp_path, name, f"trainyard:network: {{ {vcn}, subnetCidr: {block} }}", team=name)

    one, inside, beside = (
        subnet("one", "10.0.0.0/24"),
        subnet("inside", "10.0.0.128/25"),
        subnet("beside", "10.0.1.0/24"),
    )
    assert found(one, beside, inside) == [("TY114", "Pulumi.inside.yaml", 8)]
    assert check(one, inside).exit_code == 0
    assert check("--strict", one, inside).exit_code == 1


def test_the_exit_code_is_0_without_errors_even_with_warnings(good: Path) -> None:
    assert check(good).exit_code == 0
    assert check(FOLDER / "latest.yaml").exit_code == 0
    assert check("--strict", FOLDER / "latest.yaml").exit_code == 1


def test_the_exit_code_is_2_for_a_missing_file_and_for_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        result = check(path)
        assert result.exit_code == 2
        assert "TY001" in result.output


def test_without_arguments_the_folder_stacks_is_checked(good: Path) -> None:
    assert check("--stacks", good.parent).exit_code == 0
    empty = check("--stacks", good.parent / "nowhere")
    assert empty.exit_code == 2
    assert "--stacks" in empty.output


def test_standard_input_is_checked_like_a_file(good: Path) -> None:
    def piped(text: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "trainyard", "check", "-"]
        return subprocess.run(words, cwd=ROOT, input=text, capture_output=True, text=True, check=False)

    assert piped(good.read_text()).returncode == 0
    wrong = piped(good.read_text().replace("vision\n", "Vision\n", 1))
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("-:3:3: error TY014")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [["check"], ["check", "--format", "sarif"], ["plan"], ["access"], ["--help"]])
def test_a_full_disk_gives_a_message_without_a_traceback(command: list[str], good: Path) -> None:
    words = [sys.executable, "-m", "trainyard", *command, *([str(good)] if command != ["--help"] else [])]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "trainyard: cannot write: No space left on device\n")


def test_without_an_output_stream_the_exit_code_is_still_right() -> None:
    words = [sys.executable, "-m", "trainyard", "check", str(FOLDER / "two-mains.yaml")]
    closed = ["sh", "-c", '"$@" >&-', "sh", *words]
    done = subprocess.run(closed, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_line_numbers_are_those_of_yaml(tmp_path: Path) -> None:
    """For most tools, a file with the line ends of old Macs is one line. A finding must not show the rest of it."""
    file = tmp_path / "Pulumi.old.yaml"
    file.write_bytes(SMALLEST.replace("vision\n", "Vision\n", 1).replace("\n", "\r").encode())
    output = check(file).output
    assert f"{file}:3:3: error TY014" in output
    assert "\n    trainyard:team: Vision\n" in output


def test_text_output_shows_path_line_and_remedy() -> None:
    file = FOLDER / "misspelled-key.yaml"
    output = in_a_process(file).stdout
    assert f"{file}:13:7: error TY010 trainyard:jobs.resnet.framewrok: `framewrok` is not known here" in output
    assert "    framewrok: pytorch\n    remedy: did you mean `framework`?" in output
    assert "\x1b" not in output


@pytest.mark.parametrize(
    ("file", "secret"),
    [("plain-password", "hunter2"), ("secret-looking-value", "abcdef"), ("secret-argument", "abc123")],
)
@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_no_secret_is_printed(file: str, secret: str, form: str) -> None:
    assert secret not in check("--format", form, FOLDER / f"{file}.yaml").output


def test_lines_that_may_contain_a_secret_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.slip.yaml"
    file.write_text(
        SMALLEST + "  trainyard:jobs:\n    a:\n      env: { K: { secrue: sesame } }\n      password: sesame\n"
        "      code: { git: { url: 'https://me:sesame@example.com/x', brnch: main, secret: sesame } }\n"
    )
    output = check(file).output
    assert "secrue" in output
    assert "brnch" in output
    assert "sesame" not in output


@pytest.mark.parametrize(
    "job",
    [
        "{ framewrok: pytorch, env: { WORD: sesame } }",
        "{ env: {\n      WORD: 'open\n\n      sesame' }, framewrok: pytorch }",
        '{ "api key": [x,\n      sesame], framewrok: pytorch }',
    ],
)
def test_a_line_shown_by_another_finding_contains_no_secret(job: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.slip.yaml"
    file.write_text(f"{SMALLEST}  trainyard:jobs:\n    a: {job}\n")
    output = check(file).output
    assert "framewrok" in output
    assert "sesame" not in output


def test_hostile_text_does_not_reach_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.hostile.yaml"
    file.write_text(SMALLEST + '  "trainyard:\\e[2Jx\\nline": 1\n')
    output = check(file).output
    assert "\x1b" not in output
    assert output.count("TY010") == 1


def test_github_annotations_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.a,b:c%.yaml"
    file.write_text(SMALLEST.replace("team: vision", "team: Vision"))
    line = check("--format", "github", file).output.splitlines()[0]
    assert line.startswith("::error file=")
    assert "a%2Cb%3Ac%25.yaml,line=3,col=3,title=TY014::" in line
    assert "%0A" in line


def test_sarif_has_the_fields_that_code_scanning_reads(tmp_path: Path) -> None:
    log = json.loads(check("--format", "sarif", FOLDER / "two-mains.yaml", tmp_path / "none.yaml").output)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    defined = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} == defined == {"TY001", "TY404"}
    for result in run["results"]:
        (location,) = result["locations"]
        region = location["physicalLocation"].get("region", {"startLine": 1, "startColumn": 1})
        assert min(region.values()) >= 1
        assert result["level"] in ("error", "warning", "note")


@pytest.mark.parametrize(
    ("stack", "home"), [("oci-ray", "oci"), ("aws-dl1-single-node", "aws"), ("openpai-as-is", "openpai")]
)
def test_check_imports_no_engine_no_cloud_and_no_other_platform(stack: str, home: str, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom trainyard.cli.main import main\n"
        "from click.testing import CliRunner\n"
        "assert CliRunner().invoke(main, ['check', *sys.argv[1:]]).exit_code == 0\n"
        "heavy = ('pulumi', 'oci', 'pulumi_oci', 'pulumi_aws', 'boto3', 'grpc', 'lark')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "homes = ('oci', 'aws', 'openpai')\n"
        "print([name for name in homes if f'components.{name}' in sys.modules])"
    )
    # Alone in its folder, because `check` also reads the stack files beside it.
    file = tmp_path / f"Pulumi.{stack}.yaml"
    shutil.copy(ROOT / "stacks" / file.name, file)
    shutil.copytree(ROOT / "stacks" / "examples", tmp_path / "examples")
    done = subprocess.run([sys.executable, "-c", program, str(file)], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["[]", f"['{home}']"], done.stderr


def test_a_separate_process_has_the_same_exit_codes() -> None:
    assert in_a_process("stacks/Pulumi.local.yaml").returncode == 0
    assert in_a_process(FOLDER / "two-mains.yaml").returncode == 1
    assert in_a_process("none.yaml").returncode == 2
    assert in_a_process("--format", "xml", "none.yaml").returncode == 2
