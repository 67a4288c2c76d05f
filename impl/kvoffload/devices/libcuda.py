"""The three calls of the CUDA driver library that torch does not offer, through ctypes.

    cuMemcpyBatchAsync         many copies in one call: CUDA 12.8
    cuStreamWaitValue32        a stream waits for a word in memory
    cuMemHostGetDevicePointer  where a GPU sees pinned host memory

Each is asked for with the version of CUDA whose signature is used here (`cuGetProcAddress`), so that a newer library
answers with the same one: since 13.0 the header's cuMemcpyBatchAsync has no index of the copy that failed.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Final

STREAM_ORDER: Final = 1
"""CU_MEMCPY_SRC_ACCESS_ORDER_STREAM: sources are read when the stream comes to the call, and not before."""

AT_LEAST: Final = 0
"""CU_STREAM_WAIT_VALUE_GEQ."""


class CudaError(RuntimeError):
    """A call of the driver library failed."""


class _Location(ctypes.Structure):
    """CUmemLocation: where managed memory should be; not looked at for other memory."""

    _fields_ = (("type", c_int), ("id", c_int))


class _Attributes(ctypes.Structure):
    """CUmemcpyAttributes of CUDA 12.8."""

    _fields_ = (("order", c_int), ("source", _Location), ("destination", _Location), ("flags", c_uint))


_GET_ADDRESS = ctypes.CFUNCTYPE(c_int, c_char_p, POINTER(c_void_p), c_int, c_uint64, c_void_p)
_COPY_BATCH = ctypes.CFUNCTYPE(
    c_int, c_void_p, c_void_p, c_void_p, c_size_t, POINTER(_Attributes), POINTER(c_size_t), c_size_t, c_void_p, c_void_p
)
_WAIT_VALUE = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint32, c_uint)
_DEVICE_POINTER = ctypes.CFUNCTYPE(c_int, POINTER(c_uint64), c_void_p, c_uint)
_STREAM_CONTEXT = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
_PUSH = ctypes.CFUNCTYPE(c_int, c_void_p)
_POP = ctypes.CFUNCTYPE(c_int, POINTER(c_void_p))
_ERROR_NAME = ctypes.CFUNCTYPE(c_int, c_int, POINTER(c_char_p))


class LibCuda:
    """The driver library of this process.

    no_batches   why there is no cuMemcpyBatchAsync; empty: there is
    no_waits     why there is no cuStreamWaitValue32; empty: there is
    """

    def __init__(self, path: str) -> None:
        """path  of the library. Raises OSError if it cannot be loaded, AttributeError if it is older than CUDA 12."""
        library = ctypes.CDLL(path)
        self._get_address = _GET_ADDRESS(("cuGetProcAddress_v2", library))
        self._context_of = _STREAM_CONTEXT(self._needed("cuStreamGetCtx", 9020))
        self._push = _PUSH(self._needed("cuCtxPushCurrent", 4000))
        self._pop = _POP(self._needed("cuCtxPopCurrent", 4000))
        self._error_name = _ERROR_NAME(self._needed("cuGetErrorName", 6000))
        batch = self._address("cuMemcpyBatchAsync", 12080)
        self._batch = _COPY_BATCH(batch) if batch else None
        self.no_batches = "" if batch else "the driver has no cuMemcpyBatchAsync (CUDA 12.8)"
        wait, pointer = self._address("cuStreamWaitValue32", 12000), self._address("cuMemHostGetDevicePointer", 3020)
        self._wait = _WAIT_VALUE(wait) if wait else None
        self._pointer = _DEVICE_POINTER(pointer) if pointer else None
        self.no_waits = "" if wait and pointer else "the driver has no cuStreamWaitValue32"

    def context(self, stream: int) -> int:
        """The context that a stream belongs to. A thread that has not used torch yet has none of its own."""
        found = c_void_p()
        self._check("cuStreamGetCtx", self._context_of(stream, byref(found)))
        return found.value or 0

    def copy_batch(self, context: int, stream: int, sources: int, destinations: int, sizes: int, count: int) -> None:
        """All copies in one call. The last four are addresses of 64-bit addresses and sizes (bytes), and their number.

        Raises CudaError, and then nothing is known of the copies.
        """
        assert self._batch is not None
        attributes, first, failed = _Attributes(order=STREAM_ORDER), c_size_t(0), c_size_t(0)
        self._enter(context)
        try:
            result = self._batch(
                destinations,
                sources,
                sizes,
                count,
                byref(attributes),
                byref(first),
                1,
                ctypes.addressof(failed),
                stream,
            )
        finally:
            self._leave()
        self._check(f"cuMemcpyBatchAsync of {count} copies (number {failed.value})", result)

    def wait_value(self, context: int, stream: int, address: int, value: int) -> None:
        """Let a stream wait until the 32-bit word at this host address, in pinned memory, is at least this value."""
        assert self._wait is not None
        assert self._pointer is not None
        seen = c_uint64()
        self._enter(context)
        try:
            result = self._pointer(byref(seen), address, 0)
            waited = self._wait(stream, seen.value, value & 0xFFFFFFFF, AT_LEAST) if result == 0 else 0
        finally:
            self._leave()
        self._check("cuMemHostGetDevicePointer", result)
        self._check("cuStreamWaitValue32", waited)

    def _enter(self, context: int) -> None:
        self._check("cuCtxPushCurrent", self._push(context))

    def _leave(self) -> None:
        self._check("cuCtxPopCurrent", self._pop(byref(c_void_p())))

    def _address(self, name: str, version: int) -> int:
        """Where the function is that had this name in this version of CUDA (12080 is 12.8); 0: nowhere."""
        found = c_void_p()
        result = self._get_address(name.encode(), byref(found), version, 0, None)
        return (found.value or 0) if result == 0 else 0

    def _needed(self, name: str, version: int) -> int:
        address = self._address(name, version)
        if not address:
            raise AttributeError(f"the driver library has no {name}")
        return address

    def _check(self, call: str, result: int) -> None:
        if result:
            name = c_char_p()
            self._error_name(result, byref(name))
            raise CudaError(f"{call} failed: {(name.value or b'unknown error').decode()} ({result})")


def load() -> LibCuda:
    """The library under the name that its driver installs it with. Raises OSError, AttributeError as `LibCuda`."""
    return LibCuda("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
