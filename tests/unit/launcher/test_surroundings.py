# SPDX-License-Identifier: Apache-2.0
"""Messages speak of the image if the node runs in one, and of the machine's environment if it does not."""

from __future__ import annotations

from launcher.network import missing_program


def test_the_message_of_a_missing_program_names_the_image_or_the_environment() -> None:
    assert missing_program("ray", {}) == "`ray` is not in this image: correct the command, or the image"
    here = missing_program("ray", {"TRAINYARD_ENVIRONMENT": "own"})
    assert "image" not in here
    assert here.startswith("`ray` is not in this machine's environment `own`: ")
    assert here.endswith("name the package that brings it in the job's `requirements:`")
