"""The cost of calls: every hot function is measured."""

import pytest

from .. import calls


@pytest.mark.parametrize("name", calls.CASES)
def test_a_call_and_its_work_alone_take_some_time(name: str) -> None:
    call, bare = calls.nanoseconds(name, rounds=1)
    assert call > 0
    assert bare > 0
