# SPDX-License-Identifier: Apache-2.0
"""`python -m trainyard` is the command `trainyard` where it is not installed."""

from trainyard.cli.main import main

if __name__ == "__main__":
    main()
