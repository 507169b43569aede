# SPDX-License-Identifier: Apache-2.0
"""`python -m trainyard`: the command `trainyard`, without installing it."""

from trainyard.cli.main import main

if __name__ == "__main__":
    main()
