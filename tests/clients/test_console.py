# SPDX-License-Identifier: Apache-2.0
"""The console, in a real browser and by HTTP: it shows the tenancy, and hostile names in it do no harm."""

import http.client
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from localcloud.control import Cloud
from tests.support.browser import browser_program
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.waiting import LONGEST_SECONDS

PAGES = (
    "/console",
    "/console/page.js",
    "/console/runs.js",
    "/console/page.css",
    "/console/colours.css",
    "/console/data",
)
CONSOLE = Path(__file__).parents[2] / "localcloud" / "console"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"></textarea><script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def world(shared_cloud: Cloud) -> World:
    """A tenancy with resources of every kind, some with hostile names."""
    world = World(Clients(shared_cloud))
    clients, here = world.clients, {"compartmentId": world.compartment}
    rule = {
        "protocol": "6",
        "source": "10.0.0.0/16",
        "tcpOptions": {"destinationPortRange": {"min": 29400, "max": 29410}},
    }
    rules = {"ingressSecurityRules": [{**rule, "description": HOSTILE}], "egressSecurityRules": []}
    details = {**here, "vcnId": world.vcn.id, "displayName": HOSTILE, **rules}
    clients.network.create_security_list(details)
    clients.storage.create_bucket(shared_cloud.namespace, {**here, "name": "results"})
    clients.storage.put_object(shared_cloud.namespace, "results", HOSTILE, b"1")
    statement = "Allow group scientists to read vcns in compartment training"
    policy = {"compartmentId": shared_cloud.tenancy, "name": "readers", "description": "d", "statements": [statement]}
    clients.identity.create_policy(policy)
    job = world.job(f"print({HOSTILE!r})", variables={"PASSWORD": "s3cret-value"})
    run = world.run(job, display_name="hostile run")
    world.finished(run)
    world.printed(run, "owned")
    with pytest.raises(Exception, match="NotAuthorizedOrNotFound"):
        Clients(shared_cloud, "user").data_science.list_jobs(world.compartment)
    return world


def _get(cloud: Cloud, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    address = cloud.endpoint.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=LONGEST_SECONDS)
    try:
        connection.request(method, path, headers={"Host": address, **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def _data(cloud: Cloud) -> dict[str, Any]:
    sections = json.loads(_get(cloud, "/console/data")[2])["sections"]
    return {section["title"]: section.get("items", section.get("runs")) for section in sections}


def _details(cloud: Cloud, run: dict[str, Any]) -> Any:
    return json.loads(_get(cloud, f"/console/run?id={run['key']}")[2])


def test_the_data_shows_the_tenancys_resources(world: World) -> None:
    found = _data(world.clients.cloud)
    rows = [row for table in found["Networks"][0]["tables"] for row in table["rows"]]
    assert ["in", "TCP", "10.0.0.0/16", "29400-29410", HOSTILE] in rows
    statements = [
        row[0] for item in found["Who may do what"] for table in item.get("tables", []) for row in table["rows"]
    ]
    assert any("scientists" in statement for statement in statements)
    (bucket,) = found["Buckets"]
    assert (bucket["name"], bucket["tables"][0]["rows"][0][0]) == ("results", HOSTILE)
    (run,) = found["Runs"]
    assert (run["title"], run["state"], run["nodes"]) == ("hostile run", "SUCCEEDED", 1)
    assert _details(world.clients.cloud, run)["lines"] == [HOSTILE]
    calls = found["Last calls"][0]["tables"][0]["rows"]
    (refused,) = [row for row in calls if row[4].startswith("ListJobs 404")]
    assert "would grant it: Allow group scientists" in refused[5]


def test_secrets_are_not_shown(world: World) -> None:
    cloud = world.clients.cloud
    text = _get(cloud, "/console/data")[2].decode()
    text += json.dumps([_details(cloud, run) for run in _data(cloud)["Runs"]])
    assert "PASSWORD" in text
    assert "s3cret-value" not in text


def test_unchanged_data_is_not_sent_again(world: World) -> None:
    cloud = world.clients.cloud
    first = json.loads(_get(cloud, "/console/data")[2])["sections"]
    tags = ".".join(section["tag"] for section in first)
    again = json.loads(_get(cloud, f"/console/data?have={tags}")[2])["sections"]
    assert [section["title"] for section in again] == [section["title"] for section in first]
    assert not any("items" in section or "runs" in section for section in again)
    (run,) = _data(cloud)["Runs"]
    tag = _details(cloud, run)["tag"]
    assert json.loads(_get(cloud, f"/console/run?id={run['key']}&have={tag}")[2]) == {"key": run["key"], "tag": tag}
    assert _get(cloud, "/console/run?id=ocid1.none")[0] == 404


def test_unused_default_resources_are_listed_last(world: World) -> None:
    found = _data(world.clients.cloud)
    titles = [table.get("title", "") for item in found["Networks"] for table in item["tables"]]
    apart = [table["title"] for item in found["Defaults that no subnet uses"] for table in item["tables"]]
    assert not any("Default Security List" in title for title in titles)
    assert any("Default Security List" in title for title in apart)


@pytest.mark.parametrize("path", PAGES)
def test_the_console_answers_only_this_machines_host_names(shared_cloud: Cloud, path: str) -> None:
    port = shared_cloud.endpoint.rpartition(":")[2]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", "127.0.0.1:1"):
        assert _get(shared_cloud, path, Host=host)[0] == 403, host
    assert _get(shared_cloud, path, Host=f"localhost:{port}")[0] == 200
    assert _get(shared_cloud, path, **{"Sec-Fetch-Site": "cross-site"})[0] == 403


@pytest.mark.parametrize("path", PAGES)
def test_the_console_is_read_only(shared_cloud: Cloud, path: str) -> None:
    assert {_get(shared_cloud, path, method)[0] for method in ("POST", "PUT", "DELETE", "PATCH")} == {405}
    status, headers, _ = _get(shared_cloud, path)
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path", ["/console/../state.sqlite3", "/console/%2e%2e/config", "/console/page.py", "/console/"]
)
def test_no_other_path_is_served(shared_cloud: Cloud, path: str) -> None:
    assert _get(shared_cloud, path)[0] == 404


def test_the_page_loads_nothing_from_other_hosts() -> None:
    for file in (*CONSOLE.glob("*.html"), *CONSOLE.glob("*.js"), *CONSOLE.glob("*.css")):
        text = file.read_text().replace("http://www.w3.org/2000/svg", "the name of a language")
        assert not re.findall(r"https?://|innerHTML|document\.write|eval\(", text), file


def _browse(cloud: Cloud, folder: Path, *options: str) -> str:
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [
        browser_program(), "--headless", *sandbox, "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={folder}", "--virtual-time-budget=5000", *options, f"{cloud.endpoint}/console",
    ]  # fmt: skip
    told = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, told.stderr[-2000:]
    return told.stdout


def test_a_browser_shows_hostile_names_without_running_them(world: World, tmp_path: Path) -> None:
    page = _browse(world.clients.cloud, tmp_path / "browser", "--dump-dom")
    assert "<title>trainyard: the local cloud</title>" in page
    for text in (
        "29400-29410",
        "Allow group scientists to read vcns",
        "results",
        "hostile run",
        "SUCCEEDED",
        "ListJobs",
    ):
        assert text in page, text
    assert "&lt;img src=x" in page
    assert "<img" not in page
    assert page.count("<script") == 1


def test_the_page_draws_content(world: World, tmp_path: Path) -> None:
    picture = tmp_path / "console.png"
    _browse(world.clients.cloud, tmp_path / "browser", f"--screenshot={picture}", "--window-size=1200,1600")
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert picture.stat().st_size > 20_000


# Contrasts by WCAG: 4.5 for text, 3 for lines and marks.
TEXTS, MARKS = ("ink", "quiet", "accent", "good", "bad", "warn"), tuple(f"rank-{number}" for number in range(8))


def _schemes() -> dict[str, dict[str, str]]:
    light, _, dark = (CONSOLE / "colours.css").read_text().partition("@media (prefers-color-scheme: dark)")
    named = {name: dict(re.findall(r"--([\w-]+): #(\w{6})", text)) for name, text in (("light", light), ("dark", dark))}
    assert named["light"].keys() == named["dark"].keys() >= {*TEXTS, *MARKS, "page", "panel", "on-mark"}
    return named


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (0, 2, 4))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: str, other: str) -> float:
    brighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(scheme: str) -> None:
    colours = _schemes()[scheme]
    for ground in ("page", "panel"):
        for names, least in ((TEXTS, 4.5), (MARKS, 3.0)):
            for name in names:
                assert _contrast(colours[name], colours[ground]) >= least, (name, ground)
    for mark in ("good", "bad", "quiet"):
        assert _contrast(colours["on-mark"], colours[mark]) >= 4.5, mark


def test_every_colour_is_named_where_its_contrast_is_computed() -> None:
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", (CONSOLE / "page.css").read_text())
