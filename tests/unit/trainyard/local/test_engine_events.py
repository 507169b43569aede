# SPDX-License-Identifier: Apache-2.0
"""The errors at the end of `up`, read from the engine's event log."""

import json
from pathlib import Path

from trainyard.local.engine_events import EngineDiagnostic, errors_in

RUN = "urn:pulumi:dev::trainyard::trainyard:oci:Job$trainyard:index:Run::line/base"
SUBNET = "urn:pulumi:dev::trainyard::trainyard:oci:Network$oci:Core/subnet:Subnet::subnet"


def test_only_errors_and_policy_failures_are_read_each_once(tmp_path: Path) -> None:
    def diagnostic(urn: str, message: str, severity: str = "error") -> dict[str, object]:
        return {"diagnosticEvent": {"urn": urn, "message": message, "severity": severity}}

    refused = {"resourceUrn": SUBNET, "policyName": "public", "message": "open to all", "enforcementLevel": "mandatory"}
    events = [
        diagnostic(RUN, "run base: IN_PROGRESS", "info"),
        *[diagnostic(RUN, "1 error occurred:\n\t* The run base is FAILED\nits lines\n\n")] * 2,
        {"policyEvent": refused},
        {"policyEvent": {**refused, "enforcementLevel": "advisory"}},
        diagnostic("", "update failed\n"),
    ]
    log = tmp_path / "events.json"
    log.write_text("\n".join([*map(json.dumps, events), '{"cut off']))
    assert errors_in(log) == [
        EngineDiagnostic(RUN, "The run base is FAILED\nits lines"),
        EngineDiagnostic(SUBNET, "the policy public refuses this: open to all"),
    ]
    assert [error.title for error in errors_in(log)] == ["trainyard:index:Run (line/base)", "oci:Core:Subnet (subnet)"]
    assert errors_in(tmp_path / "none.json") == []


def test_unusual_line_breaks_in_output_do_not_hide_the_error(tmp_path: Path) -> None:
    """The engine writes one event per line. It does not escape characters that some readers take for a line end."""
    log = tmp_path / "events.json"
    event = {"diagnosticEvent": {"urn": RUN, "message": "The run base is FAILED: a\x85b\u2028c", "severity": "error"}}
    log.write_text(json.dumps(event, ensure_ascii=False) + "\n", "utf-8")
    assert [error.message for error in errors_in(log)] == ["The run base is FAILED: a\x85b\u2028c"]
