# SPDX-License-Identifier: Apache-2.0
"""A machine of the test's own: an empty PATH to put programs on, an empty cache, and no way out to the network."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trainyard.engine.build import CLOUD_API, CLOUD_API_KEPT, SDK
from trainyard.engine.versions import ENGINE_VERSION


@dataclass
class FakeMachine:
    """Shell scripts replace `pulumi` and `go`: the tests are about which program is used, and when."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.path = self.root / "path"
        self.path.mkdir()
        self.env |= {
            # /bin and /usr/bin for `sh` and its commands: no engine is there.
            "PATH": f"{self.path}:/usr/bin:/bin",
            "HOME": str(self.root),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "TRAINYARD_PULUMI_RELEASES": "off",
            "LOG": str(self.root / "log"),
        }

    def program(self, name: str, body: str) -> Path:
        script = self.path / name
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        return script

    def go(self, build: str = "", version: str = "go1.99.0", dynamic: bool = True) -> Path:
        """A `go` whose `build` writes a `pulumi`, after the commands in `build`."""
        module = self.root / "sdk"
        (module / "python" / "dist").mkdir(parents=True, exist_ok=True)
        if dynamic:
            (module / "python" / "dist" / "pulumi-resource-pulumi-python").write_text("#!/bin/sh\n")
        cloud = self.root / "pkg" / CLOUD_API
        cloud.mkdir(parents=True, exist_ok=True)
        for name in (*CLOUD_API_KEPT, "api.go", "schema.go", "schema_test.go"):
            (cloud / name).write_text(f"// {name}\n")
        made = f"#!/bin/sh\\necho v{ENGINE_VERSION}\\n"
        return self.program(
            "go",
            f"""echo "$@" >> "$LOG"
case "$1" in
env) [ "$2" = -json ] && echo '{{}}' || echo {version} ;;
mod) [ "$4" = {SDK} ] && echo '{{"Dir": "{module}"}}' || echo '{{"Dir": "{self.root / "pkg"}"}}' ;;
build)
  while [ "$1" != -o ]; do shift; done
  {build or ":"}
  printf '{made}' > "$2" && chmod 755 "$2" ;;
esac""",
        )

    def log(self) -> list[str]:
        log = self.root / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)
