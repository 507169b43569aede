# SPDX-License-Identifier: Apache-2.0
"""What an image for Gaudi is built from: the image of the job's release, and the team's packages."""

from __future__ import annotations

from catalog.tables import table
from components.aws_dl1.plan import AwsDl1Plan
from components.platform.image_errors import ImageError
from components.platform.recipes import IMAGES, Recipe

DOCKERFILE = IMAGES / "gaudi" / "Dockerfile"


def gaudi_recipe(plan: AwsDl1Plan, job: str) -> Recipe:
    """The recipe of a job. Nodes bring the launcher along, so the image needs nothing of ours."""
    chosen = plan.jobs[job]
    release, rows = chosen.cluster.release, table("aws_dl1")
    torch = rows["shapes"].get(chosen.shape.name, {}).get("releases", {}).get(release)
    if torch is None:
        raise ImageError(
            f"{job}: no image of the Gaudi software {release} is known here\nName it: --base REGISTRY/IMAGE:TAG"
        )
    return Recipe(f"Gaudi {release}", DOCKERFILE, {"BASE": rows["images"]["base"].format(release=release, torch=torch)})
