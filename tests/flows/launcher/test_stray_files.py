# SPDX-License-Identifier: Apache-2.0
"""Files that a script writes outside of the output folder: kept with the output, or named at the end."""

from __future__ import annotations

import json
import re
from pathlib import Path

from schemas.model import Job, Retry, Role
from tests.support.hostile import orders
from tests.support.nodes import BUCKET, Nodes, Place, nodes, planned

HOSTILE_NAMES = {"good", "new\nline\x1b[31m", "::error::planted", "ü", "a" * 250, "[x]*?"}
# Like a tutorial: writes a snapshot, a model beside the script, another in /tmp, and a downloaded data set.
TUTORIAL = (
    f"HOSTILE_NAMES = {HOSTILE_NAMES!r}"
    + """
import os, pathlib, sys
work = pathlib.Path.cwd()
snapshot = work / "snapshot.pt"
life = int(snapshot.read_text()) + 1 if snapshot.exists() else 1
print("life", life, flush=True)
snapshot.write_text(str(life))
def file(name, size=3):
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as opened:
        opened.truncate(size)
if life == 1:
    file("of-the-first-life.csv")
    sys.exit(3)
file("big.bin", 51_000_000)
file("wanted/deep/big.bin", 51_000_000)
file("wanted/notes.tmp")
file(os.environ["TMPDIR"] + "/model.pt", 1_200_000)
file(os.path.expanduser("~/elsewhere.pt"), 1_100_000)
file("data/MNIST/raw/train-images-idx3-ubyte", 47_000_000)
file("results/MNIST/raw/labels", 1000)
file("results/plot.csv")
os.utime("results/plot.csv", (1, 1))
file("draft.tmp")
file(".cache/huggingface/hub/model.bin")
file("__pycache__/train.pyc")
file("helpers.pyc")
file(".git/objects/pack")
file("tagged/big.bin")
pathlib.Path("tagged/CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\\n# a cache")
pathlib.Path("changed.txt").write_text("by training")
pathlib.Path("moved").mkdir()
os.chdir("moved")
file("relative.pt")
pathlib.Path(os.environ["TRAINYARD_OUTPUT"], "workdir").mkdir()
pathlib.Path(os.environ["TRAINYARD_OUTPUT"], "workdir", "own").write_text("the script's own")
os.mkdir("names")
for name in HOSTILE_NAMES:
    file("names/" + name)
"""
)


def one(retries: int = 0) -> Job:
    return planned("pytorch", {"main": Role(1, retry=Retry(retries))}, ports={"data": "all"})


def left(place: Place, run: Nodes) -> set[str]:
    """The names below the run's output, from several pages if necessary."""
    prefix, start, names = f"{run.folder}/output/", "", set[str]()
    while True:
        more = {"start": start} if start else dict[str, str]()
        page = place.world.clients.storage.list_objects(place.namespace, BUCKET, prefix=prefix, limit=1000, **more).data
        names |= {item.name.removeprefix(prefix) for item in page.objects}
        start = page.next_start_with
        if not start:
            return names


def started(run: Nodes, script: str, limit: str = "", **changes: object) -> Nodes:
    """The script in a working directory of its own, which has something already."""
    work = run.home / "work"
    for folder in (work, run.home / "tmp"):
        folder.mkdir()
    (work / "train.py").write_text(script)
    for name in ("there.txt", "changed.txt"):
        (work / name).write_text("before training")
    run.starter = ("env", "-C", str(work))
    run.changes = {"command": ["train.py"], **changes}
    return run.start(TMPDIR=str(run.home / "tmp"), TRAINYARD_KEEP_MEGABYTES=limit)


def lines(run: Nodes) -> str:
    """The launcher's lines, without their prefix."""
    said = run.launchers[0].said
    return "\n".join(line.removeprefix("[0.launcher] ") for line in said if line.startswith("[0.launcher]"))


def test_files_outside_of_the_output_folder_are_kept_or_named(place: Place, tmp_path: Path) -> None:
    """They are kept after a failure, too. A retry finds the files of the first life, and the files of both are kept."""
    with nodes(place, tmp_path, one(1), "tutorial") as run:
        started(run, TUTORIAL, version=4, keep=["wanted"])
        assert run.codes() == [0]
        kept = left(place, run)
        assert kept == {"workdir/own", *(f"workdir_/{name}" for name in (
            "snapshot.pt", "of-the-first-life.csv", "wanted/deep/big.bin", "wanted/notes.tmp", "results/plot.csv",
            "changed.txt", "moved/relative.pt", *(f"moved/names/{name}" for name in HOSTILE_NAMES),
        ))}  # fmt: skip
        assert place.content(f"{run.folder}/output/workdir_/snapshot.pt") == b"2"
        assert place.content(f"{run.folder}/output/workdir_/changed.txt") == b"by training"
        spoken = lines(run)
        assert "13 files (51.0 MB) that training made in its working directory put into oci://" in spoken
        assert "  51.0 MB  big.bin: larger than 50 MB\n" in spoken
        assert "  47.0 MB  data/: scripts download data into such a folder\n" in spoken
        assert "  1.0 kB  results/MNIST/: torchvision downloads such a data set\n" in spoken
        assert f"  1.2 MB  {tmp_path}/tmp/model.pt: outside of the working directory\n" in spoken
        assert f"  1.1 MB  {tmp_path}/node-0/elsewhere.pt: outside of the working directory\n" in spoken
        assert "  3 B  draft.tmp: a draft by its name\n" in spoken
        assert 'give the job `keep: ["big.bin"]`' in spoken
        for silent in (".cache", "pyc", ".git", "tagged", "there.txt", "trainyard-"):
            assert silent not in spoken.partition("will be lost")[2]
        # Also in the status, for people who do not read the log.
        told = json.loads(place.content(f"{run.folder}/status/0.json"))["lost"]
        # Other programs of this machine may write into /tmp at the same time.
        assert told["files"] >= 6
        assert told["bytes"] >= 51_000_000 + 47_000_000 + 1000 + 1_200_000 + 1_100_000 + 3
        first = {"name": "big.bin", "bytes": 51_000_000, "files": 1, "why": "larger than 50 MB"}
        assert told["largest"][0] == first
        assert 'give the job `keep: ["big.bin"]`' in told["remedy"]


def test_a_platform_may_set_another_limit(place: Place, tmp_path: Path) -> None:
    """With a larger limit, as the local cloud sets it, because its storage costs nothing."""
    script = "for name, size in {'a': 51, 'b': 30, 'c': 70}.items(): open(name, 'wb').truncate(size * 1_000_000)"
    with nodes(place, tmp_path, one(), "limit") as run:
        started(run, script, limit="65")
        assert run.codes() == [0]
        assert left(place, run) == {"workdir/b"}
        spoken = lines(run)
        assert "  70.0 MB  c: larger than 65 MB\n" in spoken
        assert "  51.0 MB  a: more than 65 MB together\n" in spoken


def test_files_that_only_the_local_cloud_keeps_are_named(place: Place, tmp_path: Path) -> None:
    """A checkpoint that comes back here, and that a real cloud loses after the paid training."""
    script = "for name, size in {'snapshot.pt': 149, 'b': 30}.items(): open(name, 'wb').truncate(size * 1_000_000)"
    with nodes(place, tmp_path, one(), "local-only") as run:
        started(run, script, limit="9000")
        assert run.codes() == [0]
        assert left(place, run) == {"workdir/snapshot.pt", "workdir/b"}
        spoken = lines(run)
        assert "1 file (149.0 MB) that training made would be lost on a real cloud;" in spoken
        assert "  149.0 MB  snapshot.pt: larger than 50 MB\n" in spoken
        assert 'give the job `keep: ["snapshot.pt"]`' in spoken
        status = json.loads(place.content(f"{run.folder}/status/0.json"))
        assert status["lost"] is None
        assert status["localOnly"]["largest"][0]["name"] == "snapshot.pt"


def test_a_run_without_a_bucket_names_all_lost_files(tmp_path: Path) -> None:
    script = (
        'import os\nopen("model.pt", "w").write("x")\nopen(os.environ["TRAINYARD_OUTPUT"] + "/log", "w").write("yy")'
    )
    with nodes(None, tmp_path, one(), "nowhere") as run:
        started(run, script)
        assert run.codes() == [0]
        spoken = lines(run)
        assert "  1 B  model.pt: this run has no bucket\n" in spoken
        assert re.search(r"^  2 B  \S+/output/log: this run has no bucket$", spoken, re.M)
        assert "Nothing is kept for a run without a bucket" in spoken
        assert "`keep:" not in spoken


# Names, folders and files that could break a walk of the folder.
HOSTILE = (
    f"HOSTILE_NAMES = {HOSTILE_NAMES!r}"
    + r"""
import os, socket, sys
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
os.symlink("/etc/hostname", "link")
os.symlink("/etc", "linked-folder")
os.symlink("nowhere", "dangling")
for name in (*HOSTILE_NAMES, b"\xff\xfe"):
    open(name, "w").write("kept")
os.truncate(os.open("sparse", os.O_CREAT | os.O_WRONLY), 1 << 42)
open("closed", "w").write("x")
os.chmod("closed", 0)
os.mkdir("many")
for number in range(1500):
    open(f"many/{number:04}", "w").close()
here = os.open(".", os.O_RDONLY)
for depth in range(600):
    os.mkdir("d", dir_fd=here)
    here = os.open("d", os.O_RDONLY, dir_fd=here)
os.close(os.open("deepest", os.O_CREAT | os.O_WRONLY, dir_fd=here))
sys.stdout.flush()
os.kill(os.getpid(), 9)
"""
)


def test_hostile_file_names_do_not_stop_the_upload(tmp_path: Path) -> None:
    """The script is also killed. A thousand files are kept, those of the upper folder first. The others are counted."""
    with nodes(None, tmp_path, one(), "hostile-leavings") as run:
        started(run, HOSTILE, folder=(tmp_path / "shared").as_uri())
        assert run.codes() == [137]
        top = tmp_path / "shared" / "output" / "workdir"
        kept = {str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir()}
        assert kept >= HOSTILE_NAMES
        assert not {name for name in kept if name.startswith(("pipe", "socket", "link", "dangling", "d/"))}
        assert len(kept | {"closed"}) == 1000, "one was chosen that only root can read"
        spoken = lines(run)
        assert re.search(r"^(1,000|999) files \(", spoken, re.M)
        assert re.search(r"^[\d,]+ files \(4\.4 TB\) that training made will be lost with this node:", spoken, re.M)
        assert "  4.4 TB  sparse: larger than 50 MB\n" in spoken
        assert r"  4 B  \udcff\udcfe: its name is not UTF-8" in spoken
        assert "or too deep folders, to look at all" in spoken
        named = spoken.partition("will be lost")[2]
        assert len([line for line in named.splitlines() if line.startswith("  ")]) == 11, "ten, and how many more"
        assert orders(run.launchers[0].text.encode()) == []


GONE = """
import os, shutil, pathlib
pathlib.Path("model.pt").write_text("x")
work = os.getcwd()
os.chdir("/")
shutil.rmtree(work)
{then}
"""


def test_a_missing_or_linked_working_directory_is_not_walked(place: Place, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    link = f"""
pathlib.Path("{tmp_path}/outside/secret.txt").write_text("not of this folder")
os.symlink("{tmp_path}/outside", work)
"""
    for name, then in (("gone", ""), ("linked", link)):
        with nodes(place, tmp_path / name, one(), f"work-{name}") as run:
            started(run, GONE.format(then=then))
            assert run.codes() == [0]
            assert left(place, run) == set()
