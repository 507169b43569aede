# SPDX-License-Identifier: Apache-2.0
"""Makes a note (a file) with a secret in it, and other resources that the test sets in the configuration."""

import pulumi
from greeting import GREETING

config = pulumi.Config()
mode = config.get("mode")


class Note(pulumi.CustomResource):
    def __init__(self, name: str, path: str, text: pulumi.Input[str]) -> None:
        super().__init__("notes:index:Note", name, {"path": path, "text": text, "length": None})


note = Note("note", config.require("path"), config.require_secret("text"))
pulumi.export("text", note.text)
pulumi.export("length", note.length)
pulumi.export("root", pulumi.runtime.get_root_directory())
print(f"{GREETING} from stdout, {len(config.get('large') or '')} characters of config")
if mode == "run-error":
    raise pulumi.RunError("there is no more paper")
if mode == "exception":
    {}["no such page"]
if mode == "wait":
    import pathlib
    import time

    print("waiting", flush=True)
    while not pathlib.Path(config.require("ends")).exists():
        time.sleep(0.05)
if mode == "dynamic":
    from pulumi import dynamic

    class Counter(dynamic.ResourceProvider):
        def create(self, props: dict) -> dynamic.CreateResult:
            return dynamic.CreateResult("counted", {"count": props["start"] + 1})

    class Count(dynamic.Resource):
        count: pulumi.Output[int]

    pulumi.export("count", Count(Counter(), "count", {"start": 41, "count": None}).count)
