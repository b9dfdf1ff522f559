"""What the memory of a GPU has to do for a kernel, counted access by access in the simulator.

Threads of a warp that touch an array in the same line for the same time between two barriers do so together. Shared
memory has 32 banks of four bytes, of which each gives one word at a time; memory of the device is read and written in
sectors of 32 bytes. Where a GPU would read 16 bytes at once, single elements are counted.
"""

import sys
from collections import Counter, defaultdict
from contextlib import contextmanager

from greenlet import getcurrent

from tests.cuda import scheduler

WARP, BANKS, WORD, SECTOR = 32, 32, 4, 32


class Traffic:
    """The accesses of a launch: of shared memory and of the device's."""

    def __init__(self):
        self.times = Counter()
        self.requests = defaultdict(dict)

    def __call__(self, array, key, written):
        frame, thread = sys._getframe(2), getcurrent()
        shared = array.shared
        where = (frame.f_code, frame.f_lineno, id(array), written, thread.blockIdx, thread.phase)
        turn = self.times[where, thread.rank] = self.times[where, thread.rank] + 1
        warp, lane = divmod(thread.rank, WARP)
        size = array.values.itemsize
        request = (shared, written, frame.f_lineno, size, *where, warp, turn)
        self.requests[request][lane] = array.place(key) - self.base(array)

    def base(self, array):
        """Give where an array starts on a GPU, which aligns them: views start where the whole does."""
        owner = array.values
        while owner.base is not None and hasattr(owner.base, "strides"):
            owner = owner.base
        return owner.__array_interface__["data"][0]

    def conflicts(self):
        """Give, for each line, how many times as long as one word its worst request of shared memory takes."""
        worst = defaultdict(int)
        for (shared, _, line, size, *_), lanes in self.requests.items():
            if shared:
                together = WARP * WORD // size  # lanes that are served at once
                for first in range(0, WARP, together):
                    served = {at for lane, at in lanes.items() if first <= lane < first + together}
                    banks = Counter(at // size % (BANKS * WORD // size) for at in served)
                    worst[line] = max([worst[line], *banks.values()])
        return dict(worst)

    def efficiency(self, written):
        """Give the share of the bytes of sectors, read or written, that are asked for, by more than one element."""
        used = moved = 0
        for (shared, writes, _, size, *_), lanes in self.requests.items():
            if not shared and writes == written and len(set(lanes.values())) > 1:
                used += size * len(set(lanes.values()))
                moved += SECTOR * len({at // SECTOR for at in lanes.values()})
        return used / moved if moved else 1.0


@contextmanager
def watched():
    """Give the traffic of what the block launches."""
    traffic = scheduler.observer = Traffic()
    try:
        yield traffic
    finally:
        scheduler.observer = None
