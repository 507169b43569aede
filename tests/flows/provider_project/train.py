# SPDX-License-Identifier: Apache-2.0
"""What the run runs."""

import os
import sys

print("training with", os.environ["TOKEN"], flush=True)
sys.exit(int(os.environ["EXIT_CODE"]))
