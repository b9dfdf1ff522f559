"""A quicker and stricter scheduler for numba-cuda's simulator: greenlets in place of threads, and no error unseen.

The threads of a block run one after the other from barrier to barrier, in an order that changes from one to the next.
It refuses what the simulator lets pass: barriers that not all threads reach, or at different lines; an element of
memory that two threads touch between two barriers, or two blocks at all, one of them writing another value; negative
indices; more than 1024 threads or 48 KiB of shared memory; another shape for an array that does not lie in one piece,
to which numba-cuda gives wrong strides or none. Memory that nobody wrote is NaN, or 0xAA…. An observer sees every
access (`tests.cuda.traffic`).
"""

import sys
from contextvars import copy_context
from types import SimpleNamespace

import numpy as np
from greenlet import getcurrent, greenlet
from numba.cuda.simulator import kernel, kernelapi
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

SHARED_BYTES, THREADS = 48 * 1024, 1024


class RaceError(RuntimeError):
    """Two threads touch one element of memory without a barrier between them."""


class BarrierError(RuntimeError):
    """Not all threads of a block wait at the same barrier."""


observer = None
"""Is told of every access: the array, the index, whether it is written."""

SEVERAL = object()


class Touched:
    """Who wrote and read each element of memory last: block, phase (barriers so far) and thread."""

    def __init__(self):
        self.launch, self.writers, self.readers = None, {}, {}

    def begin(self, launch):
        """Forget what earlier launches did; an array that a kernel is given is made anew for each."""
        if launch is not self.launch:
            self.launch, self.writers, self.readers = launch, {}, {}


touched = Touched()
"""The memory of the device; shared arrays keep their own."""


class Checked:
    """An array inside a kernel: no index is negative, no two threads meet.

    Two threads meet where one writes what another block touches, or another thread in the same phase. Nearly all of the
    time of the tests is spent in the two functions below: they call no others.
    """

    shared = False

    def __init__(self, values):
        self.values = values
        self.shape, self.size, self.ndim, self.dtype = (
            tuple(values.shape),
            values.size,
            values.ndim,
            values.dtype,
        )
        self.strides, self.base = values.strides, values.__array_interface__["data"][0]
        self.touched = touched

    def place(self, key):
        """Give the address of an element."""
        indices = key if isinstance(key, tuple) else (key,)
        return self.base + sum(i * stride for i, stride in zip(indices, self.strides, strict=True))

    def __getitem__(self, key):
        place = self.base
        for index, stride in zip(key if type(key) is tuple else (key,), self.strides, strict=True):
            if index < 0:
                raise IndexError(f"index {key} is negative")
            place += index * stride
        value = self.values[key]
        thread = getcurrent()
        block, phase = thread.blockIdx, thread.phase
        last = self.touched.writers.get(place)
        if last is not None and (
            last[0] is not block or (last[1] == phase and last[2] is not thread)
        ):
            raise RaceError(f"{key} was written by another thread since the last barrier")
        last, now = self.touched.readers.get(place), (block, phase, thread)
        if last is not None:
            if last[0] is not block:
                now = (SEVERAL, phase, thread)
            elif last[1] == phase and last[2] is not thread:
                now = (block, phase, SEVERAL)
        self.touched.readers[place] = now
        if observer is not None:
            observer(self, key, False)
        return value

    def __setitem__(self, key, value):
        place = self.base
        for index, stride in zip(key if type(key) is tuple else (key,), self.strides, strict=True):
            if index < 0:
                raise IndexError(f"index {key} is negative")
            place += index * stride
        before = self.values[key]
        self.values[key] = value
        thread = getcurrent()
        block, phase = thread.blockIdx, thread.phase
        # Of the device's memory, the same value may be written by several: a flag.
        changed = self.shared or self.values[key] != before
        writer, reader = self.touched.writers.get(place), self.touched.readers.get(place)
        for last in (reader, writer if changed else None):
            if last is not None and (
                last[0] is not block or (last[1] == phase and last[2] is not thread)
            ):
                raise RaceError(f"{key} was touched by another thread since the last barrier")
        self.touched.writers[place] = (block, phase, thread)
        if observer is not None:
            observer(self, key, True)


class Shared(Checked):
    """Shared memory of one block."""

    shared = True

    def __init__(self, values):
        super().__init__(values)
        self.touched = Touched()


class Local:
    """Registers: nobody else sees them."""

    def __init__(self, values):
        self.values, self.shape = values, values.shape

    def __getitem__(self, key):
        if min(key) < 0 if type(key) is tuple else key < 0:
            raise IndexError(f"index {key} is negative")
        return self.values[key]

    def __setitem__(self, key, value):
        if min(key) < 0 if type(key) is tuple else key < 0:
            raise IndexError(f"index {key} is negative")
        self.values[key] = value


def poisoned(shape, dtype):
    dtype = np.dtype(getattr(dtype, "name", dtype))
    values = np.empty(shape, dtype)
    values.fill(np.nan) if dtype.kind == "f" else values.view(np.uint8).fill(0xAA)
    return values


class SharedMemory:
    def __init__(self, _dynamic):
        self.arrays, self.bytes, self.block = {}, 0, None

    def array(self, shape, dtype, alignment=None):
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
        return Local(poisoned(shape, dtype))


class Thread(greenlet):
    """One thread of a block."""

    def __init__(self, function, arguments, block, index, rank):
        super().__init__(lambda: function(*arguments))
        self.blockIdx, self.threadIdx, self.rank = block, index, rank
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
    touched.begin(next((given for given in arguments if isinstance(given, Checked)), None))
    block = kernelapi.Dim3(*grid_point)
    x, y, z = self._block_dim
    indices = [kernelapi.Dim3(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    with np.errstate(all="ignore"):
        threads = [Thread(self._f, arguments, block, *at[::-1]) for at in enumerate(indices)]
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


def reshape(self, *shape):
    """Stand in for FakeCUDAArray.reshape, which copies where a real one cannot; like that, it forgets the stream."""
    if not self.is_c_contiguous():
        raise NotImplementedError("another shape for an array that does not lie in one piece")
    return FakeCUDAArray(self._ary.reshape(*shape))


def install():
    """Replace the simulator's scheduler, memory and arrays."""
    kernel.BlockManager.run = run_block
    kernel.FakeWithinKernelCUDAArray = lambda array: Checked(array._ary)
    FakeCUDAArray.reshape = reshape
    kernelapi.FakeCUDAShared = SharedMemory
    kernelapi.FakeCUDALocal = LocalMemory
    kernelapi.threading = SimpleNamespace(current_thread=getcurrent)
