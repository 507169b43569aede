# SPDX-License-Identifier: Apache-2.0
"""Pushes a built image: signs the tool in for this push, runs it, and shows the digest."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from components.plan.model import Plan
from components.platform.calls import Tell
from components.platform.image_errors import ImageError
from components.platform.images import Endpoint, ImagePlatform, WantedImage
from trainyard.images import tools
from trainyard.images.login import login_variables
from trainyard.images.tools import Tool


@dataclass(frozen=True)
class Push:
    """How images of a plan are pushed. `show` prints results, `tell` prints remarks."""

    tool: Tool
    plan: Plan
    platform: ImagePlatform
    sign_in: bool
    dry_run: bool
    show: Tell
    tell: Tell

    def judge(self, one: WantedImage, overwrite: bool) -> None:
        """Raises where this push would do harm or cannot work."""
        if why := self.platform.judge(self.plan, one, overwrite):
            self.tell(f"Could not check whether {one.tag} exists already: {why}")

    def push(self, one: WantedImage, place: Endpoint) -> None:
        """Pushes the image, or shows the words that would."""
        there = place.address(one.address)
        login = tools.login_words(self.tool, place.host, self.platform.user_of(one))
        if self.dry_run:
            self.show(f"{one.address}, for {', '.join(job.name for job in one.jobs)}")
            for words in tools.push_words(self.tool, one.address, there, place.plain_http):
                self.show(f"  {shlex.join(words)}")
            self.show(f"  {self.platform.by_hand(login)}")
            return
        with TemporaryDirectory(prefix="trainyard-image-") as folder:
            login_environment = self._sign_in(Path(folder), place) if self.sign_in else {}
            digest_file = Path(folder, "digest")
            for words in tools.push_words(self.tool, one.address, there, place.plain_http, digest_file):
                code, output = tools.run(self.tool, words, self.show, login_environment)
                if code:
                    raise self.platform.explain_failure(output, self.plan, one, login)
            digest = tools.pushed_digest(self.tool, there, digest_file)
        self.show(f"Pushed {one.address}" + (f"\n  {digest}" if digest else ""))

    def _sign_in(self, folder: Path, place: Endpoint) -> dict[str, str]:
        """Sign in for this push. Without credentials for it, the tool's own login is used."""
        try:
            user, secret = self.platform.login(place)
            return login_variables(self.tool, folder, place, user, secret)
        except ImageError as error:
            why = str(error).partition("\n")[0]
            self.tell(f"Not signed in ({why}): {self.tool.name} uses its own login.")
            return {}
