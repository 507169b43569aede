# SPDX-License-Identifier: Apache-2.0
"""`python -m cli` is the command `trainyard` where it is not installed."""

from cli.main import main

if __name__ == "__main__":
    main()
