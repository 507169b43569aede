# SPDX-License-Identifier: Apache-2.0
"""How Pulumi's engine marks values: in messages, states and previews. Source: sdk/v3, `go/common/resource`."""

from typing import Final

# The key that marks an object as a special value. Its value says which kind it is.
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
# Placeholders of values that only `up` will know, for texts and for the other kinds.
UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWNS: Final = frozenset({
    UNKNOWN_TEXT,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
})  # fmt: skip
