"""A quicker and stricter scheduler for numba-cuda's simulator: greenlets in place of threads, and no error unseen.

The threads of a block run one after the other from barrier to barrier, in an order that changes from one to the next.
It refuses what the simulator lets pass: barriers that not all threads reach, or at different lines; an element of
shared memory that two threads touch between two barriers, one of them writing; negative indices; more than 1024 threads
or 48 KiB of shared memory. Memory that nobody wrote is NaN, or 0xAA….
"""

import sys
from contextvars import copy_context
from types import SimpleNamespace

import numpy as np
from greenlet import getcurrent, greenlet
from numba.cuda.simulator import kernel, kernelapi

SHARED_BYTES, THREADS = 48 * 1024, 1024


class RaceError(RuntimeError):
    """Two threads touch one element of shared memory without a barrier between them."""


class BarrierError(RuntimeError):
    """Not all threads of a block wait at the same barrier."""


class Checked:
    """An array inside a kernel: no index is negative."""

    def __init__(self, values):
        self.values = values
        self.shape, self.size, self.ndim, self.dtype = (
            tuple(values.shape),
            values.size,
            values.ndim,
            values.dtype,
        )

    def __getitem__(self, key):
        check(key)
        return self.values[key]

    def __setitem__(self, key, value):
        check(key)
        self.values[key] = value


class Shared(Checked):
    """Shared memory: who wrote and read each element since the last barrier."""

    def __init__(self, values):
        super().__init__(values)
        self.writers, self.readers = {}, {}

    def __getitem__(self, key):
        check(key)
        thread = getcurrent()
        writer = self.writers.get(key)
        if writer is not None and writer[0] == thread.phase and writer[1] is not thread:
            raise RaceError(f"{key} was written by another thread since the last barrier")
        reader = self.readers.get(key)
        if reader is not None and reader[0] == thread.phase and reader[1] is not thread:
            self.readers[key] = (thread.phase, None)  # several
        else:
            self.readers[key] = (thread.phase, thread)
        return self.values[key]

    def __setitem__(self, key, value):
        check(key)
        thread = getcurrent()
        for last in (self.writers.get(key), self.readers.get(key)):
            if last is not None and last[0] == thread.phase and last[1] is not thread:
                raise RaceError(f"{key} was touched by another thread since the last barrier")
        self.writers[key] = (thread.phase, thread)
        self.values[key] = value


def check(key):
    for index in key if isinstance(key, tuple) else (key,):
        if index < 0:
            raise IndexError(f"index {key} is negative")


def poisoned(shape, dtype):
    dtype = np.dtype(getattr(dtype, "name", dtype))
    values = np.empty(shape, dtype)
    values.fill(np.nan) if dtype.kind == "f" else values.view(np.uint8).fill(0xAA)
    return values


class SharedMemory:
    def __init__(self, _dynamic):
        self.arrays, self.bytes, self.block = {}, 0, None

    def array(self, shape, dtype):
        block = getcurrent().blockIdx
        if self.block is not block:
            self.arrays, self.bytes, self.block = {}, 0, block
        frame = sys._getframe(1)
        place = (frame.f_code, frame.f_lineno)
        if place not in self.arrays:
            self.arrays[place] = Shared(poisoned(shape, dtype))
            self.bytes += self.arrays[place].values.nbytes
            if self.bytes > SHARED_BYTES:
                raise MemoryError(
                    f"{self.bytes} bytes of shared memory; a block has {SHARED_BYTES}"
                )
        return self.arrays[place]


class LocalMemory:
    def array(self, shape, dtype):
        return Checked(poisoned(shape, dtype))


class Thread(greenlet):
    """One thread of a block."""

    def __init__(self, function, arguments, block, index):
        super().__init__(lambda: function(*arguments))
        self.blockIdx, self.threadIdx = block, index
        self.phase, self.line = 0, None
        self.gr_context = copy_context()  # NumPy keeps there what it warns of

    def syncthreads(self):
        self.phase += 1
        self.line = sys._getframe(2).f_lineno
        self.parent.switch()


def run_block(self, grid_point, *arguments):
    """Stand in for BlockManager.run. As on a GPU, arithmetic gives infinities and NaN without a word."""
    if np.prod(self._block_dim) > THREADS:
        raise ValueError(f"a block of {self._block_dim} threads; it has at most {THREADS}")
    block = kernelapi.Dim3(*grid_point)
    x, y, z = self._block_dim
    indices = [kernelapi.Dim3(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    with np.errstate(all="ignore"):
        threads = [Thread(self._f, arguments, block, index) for index in indices]
    while threads:
        for thread in threads:
            thread.switch()
        alive = [thread for thread in threads if not thread.dead]
        if alive and len(alive) < len(threads):
            raise BarrierError(
                f"{len(threads) - len(alive)} threads ended before a barrier of others"
            )
        if len({thread.line for thread in alive}) > 1:
            raise BarrierError("threads wait at different barriers")
        threads = alive[::-1]


def install():
    """Replace the simulator's scheduler, memory and arrays."""
    kernel.BlockManager.run = run_block
    kernel.FakeWithinKernelCUDAArray = lambda array: Checked(array._ary)
    kernelapi.FakeCUDAShared = SharedMemory
    kernelapi.FakeCUDALocal = LocalMemory
    kernelapi.threading = SimpleNamespace(current_thread=getcurrent)
