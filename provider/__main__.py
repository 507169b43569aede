# SPDX-License-Identifier: Apache-2.0
"""Started by the engine's language host as `python <this folder> <engine address>`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # When Python starts a folder, it searches for modules inside the folder only, not beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from provider.base.serve import main
    from provider.plugin import Trainyard

    main(Trainyard(), sys.argv[1:])
