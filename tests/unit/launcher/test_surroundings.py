# SPDX-License-Identifier: Apache-2.0
"""An image is spoken of where there is one. Where an environment stands in for it, that is."""

from __future__ import annotations

from launcher.network import missing_program


def test_a_missing_program_is_missing_from_what_is_there() -> None:
    assert missing_program("ray", {}) == "`ray` is not in this image: correct the command, or the image"
    here = missing_program("ray", {"TRAINYARD_ENVIRONMENT": "own"})
    assert "image" not in here
    assert here.startswith("`ray` is not in this machine's environment `own`: ")
    assert here.endswith("name the package that brings it in the job's `requirements:`")
