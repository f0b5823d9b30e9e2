"""Stand in for pynvml, NVIDIA's management library, on a machine with four GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

GIB = 2**30


class NVMLError(Exception):
    """The library has no answer."""


@dataclass(frozen=True)
class Device:
    """A GPU, or a MIG device that is a part of one."""

    uuid: str
    major: int
    minor: int
    memory: int = 141 * GIB
    free: int = 140 * GIB
    part_of: Device | None = None


FOUR = (
    Device("GPU-a111", 9, 3),
    Device("GPU-b222", 12, 0),
    Device("GPU-c333", 9, 0, 24 * GIB, 20 * GIB),
    Device("GPU-d444", 9, 0),
)
MIG = Device("MIG-e555", 0, 0, 18 * GIB, 17 * GIB, part_of=FOUR[3])


class Library(SimpleNamespace):
    """The library's functions; `silent` ones raise."""

    NVMLError = NVMLError

    def __init__(self, *silent: str) -> None:
        super().__init__()
        for name in silent:
            setattr(self, name, self.refuse)

    def refuse(self, *_: object) -> None:
        raise NVMLError

    def nvmlInit(self) -> None:
        """Do nothing, as it does where there is a driver."""

    def nvmlDeviceGetCount(self) -> int:
        return len(FOUR)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Device:
        if index >= len(FOUR):
            raise NVMLError
        return FOUR[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Device:
        found = [device for device in (*FOUR, MIG) if device.uuid == uuid]
        if not found:
            raise NVMLError
        return found[0]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, device: Device) -> Device:
        assert device.part_of is not None
        return device.part_of

    def nvmlDeviceGetUUID(self, device: Device) -> str:
        return device.uuid

    def nvmlDeviceGetCudaComputeCapability(self, device: Device) -> tuple[int, int]:
        if device.part_of is not None:
            raise NVMLError
        return device.major, device.minor

    def nvmlDeviceGetName(self, device: Device) -> str:
        return f"NVIDIA {device.uuid}"

    def nvmlDeviceGetMemoryInfo(self, device: Device) -> SimpleNamespace:
        return SimpleNamespace(total=device.memory, free=device.free)

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return 13010
