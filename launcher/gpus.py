# SPDX-License-Identifier: Apache-2.0
"""How busy this node's GPUs are: NVIDIA's by its own library, which comes with the driver; AMD's by sysfs."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

_NVML = "libnvidia-ml.so.1"
_AMD = "class/drm/card*/device/gpu_busy_percent"


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Gpus:
    """Looks for them once, when first asked."""

    def __init__(self, sysfs: Path = Path("/sys")) -> None:
        self._sysfs = sysfs
        self._library: ctypes.CDLL | None = None
        self._devices: list[ctypes.c_void_p] | None = None
        self._files: list[Path] = []

    @property
    def readable(self) -> bool:
        """Whether there is a GPU that can be asked."""
        self._find()
        return bool(self._devices or self._files)

    def busiest(self) -> int | None:
        """Percentage of time in which the busiest GPU computed lately; None where none can be read."""
        self._find()
        found = [self._nvidia(device) for device in self._devices or ()]
        for file in self._files:
            with suppress(OSError, ValueError):
                found.append(int(file.read_text()))
        return max((percent for percent in found if percent is not None), default=None)

    def _find(self) -> None:
        if self._devices is None:
            self._devices = []
            self._files = sorted(self._sysfs.glob(_AMD))
            with suppress(OSError, AttributeError):
                self._devices = self._nvidia_devices()

    def _nvidia_devices(self) -> list[ctypes.c_void_p]:
        library = ctypes.CDLL(_NVML)
        count = ctypes.c_uint()
        if library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return []
        self._library, found = library, []
        for index in range(count.value):
            device = ctypes.c_void_p()
            if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)) == 0:
                found.append(device)
        return found

    def _nvidia(self, device: ctypes.c_void_p) -> int | None:
        assert self._library is not None
        busy = _Utilization()
        failed = self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(busy))
        return None if failed else int(busy.gpu)
