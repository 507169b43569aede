# SPDX-License-Identifier: Apache-2.0
"""The training script of the run. When it is cancelled, it needs some time to end."""

import os
import signal
import sys
import time


def end(*_: object) -> None:
    time.sleep(2)
    sys.exit(143)


signal.signal(signal.SIGTERM, end)
print("training with", os.environ["TOKEN"], flush=True)
time.sleep(float(sys.argv[sys.argv.index("--seconds") + 1]))
sys.exit(int(os.environ["EXIT_CODE"]))
