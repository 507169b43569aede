# SPDX-License-Identifier: Apache-2.0
"""This node's accelerators: how many a driver shows, their memory, and how busy they are. It needs no package.

GPUs of NVIDIA are asked through the driver's library (NVML). The others, and a container without that library, show
files: a row for each kind says which.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_NVML = "libnvidia-ml.so.1"
_AMD_BUSY = "class/drm/card*/device/gpu_busy_percent"
_VERSION_LETTERS = 80
_GIGABYTE = 1_000_000_000
# Drivers keep a part of the memory for themselves.
_USABLE = 0.9


@dataclass(frozen=True)
class DeviceKind:
    """Patterns of files below `/`. `devices`: one file for each; `memory`: a file with each one's bytes. `version`: the
    driver's own. `by_nvml`: the driver has a library that says more."""

    words: str
    devices: tuple[str, ...]
    version: str
    memory: str = ""
    by_nvml: bool = False


KINDS = {
    "nvidia": DeviceKind("NVIDIA GPUs", ("dev/nvidia[0-9]*",), "sys/module/nvidia/version", by_nvml=True),
    "amd": DeviceKind(
        "AMD GPUs", ("sys/class/drm/card*/device/mem_info_vram_total",), "sys/module/amdgpu/version",
        "sys/class/drm/card*/device/mem_info_vram_total",
    ),
    "gaudi": DeviceKind("Gaudi", ("dev/accel/accel[0-9]*", "dev/hl[0-9]*"), "sys/module/habanalabs/version"),
    "neuron": DeviceKind("Trainium", ("dev/neuron[0-9]*",), "sys/module/neuron/version"),
}  # fmt: skip


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Nvml:
    """NVIDIA's library. OSError, AttributeError: it is not there. `problem`: why the driver does not answer."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_NVML)
        self.devices: list[ctypes.c_void_p] = []
        count = ctypes.c_uint()
        failed = self._library.nvmlInit_v2() or self._library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        self.problem = f"the driver does not answer (NVML error {failed})" if failed else ""
        for index in range(count.value):
            device = ctypes.c_void_p()
            # A GPU that is lost is counted, but there is no handle for it.
            if self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)) == 0:
                self.devices.append(device)

    def busy_percent(self, device: ctypes.c_void_p) -> int | None:
        busy = _Utilization()
        failed = self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(busy))
        return None if failed else int(busy.gpu)

    def memory_bytes(self, device: ctypes.c_void_p) -> int:
        """A GPU's memory; 0 if the driver does not say."""
        memory = _Memory()
        failed = self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
        return 0 if failed else int(memory.total)

    def driver_version(self) -> str:
        text = ctypes.create_string_buffer(_VERSION_LETTERS)
        failed = self._library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(_VERSION_LETTERS))
        return "" if failed else text.value.decode("ascii", "replace")


class Gpus:
    """How busy the node's GPUs are. Looks for them once, at the first use."""

    def __init__(self, sysfs: Path = Path("/sys")) -> None:
        self._sysfs = sysfs
        self._looked = False
        self._nvml: Nvml | None = None
        self._files: list[Path] = []

    @property
    def readable(self) -> bool:
        """Whether there is a GPU whose driver reports its use."""
        self._find()
        return bool((self._nvml and self._nvml.devices) or self._files)

    def busiest(self) -> int | None:
        """The recent use of the busiest GPU in percent; None if no GPU can be read."""
        self._find()
        percentages = [self._nvml.busy_percent(device) for device in self._nvml.devices] if self._nvml else []
        for file in self._files:
            with suppress(OSError, ValueError):
                percentages.append(int(file.read_text()))
        return max((percent for percent in percentages if percent is not None), default=None)

    def _find(self) -> None:
        if not self._looked:
            self._looked = True
            self._files = sorted(self._sysfs.glob(_AMD_BUSY))
            with suppress(OSError, AttributeError):
                self._nvml = Nvml()


@dataclass(frozen=True)
class FoundDevices:
    """`memories`: in bytes, of those that say it. `driver`: its version, or why it does not answer."""

    count: int
    memories: tuple[int, ...] = ()
    driver: str = ""


def find_devices(kind: str, root: Path = Path("/")) -> FoundDevices:
    """The devices of a kind that this node shows."""
    row = KINDS[kind]
    if row.by_nvml:
        with suppress(OSError, AttributeError):
            nvml = Nvml()
            memories = tuple(nvml.memory_bytes(device) for device in nvml.devices)
            return FoundDevices(len(nvml.devices), memories, nvml.problem or f"driver {nvml.driver_version()}")
    files = [file for pattern in row.devices for file in root.glob(pattern)]
    sizes, driver = [], f"no driver is seen in /{row.version}"
    for file in root.glob(row.memory) if row.memory else ():
        with suppress(OSError, ValueError):
            sizes.append(int(file.read_text()))
    with suppress(OSError):
        driver = f"driver {(root / row.version).read_text().strip()}"
    return FoundDevices(len(files), tuple(sizes), driver)


def device_problem(kind: str, count: int, memory_gb: float, root: Path = Path("/")) -> str:
    """Why this node does not have the planned devices; empty if it has. `kind` empty: any kind. `memory_gb`: of each,
    by the machine's data sheet; 0: not known."""
    if not kind:
        most = max(find_devices(known, root).count for known in KINDS)
        return "" if most >= count else f"{most} of {count} planned accelerators are there"
    if kind not in KINDS:
        return ""  # of a later release
    found, words = find_devices(kind, root), KINDS[kind].words
    if found.count < count:
        return f"{found.count} of {count} planned {words} are there ({found.driver})"
    small = [size for size in found.memories if 0 < size < memory_gb * _GIGABYTE * _USABLE]
    if small:
        memory = f"{min(small) / _GIGABYTE:.0f} GB of memory, and {memory_gb:g} GB are planned"
        return f"{len(small)} of {found.count} {words} have {memory} ({found.driver})"
    return ""
