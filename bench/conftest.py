"""What several benchmarks need as tests."""

import os

import images
import pytest


@pytest.fixture
def fashion() -> None:
    """Skip without the images; where CI runs beside them they must be there. GitHub's machines have none."""
    if not images.fashion_is_there():
        reason = f"{images.ROOT} has no Fashion-MNIST; BPLS_DATA can name another folder"
        if os.environ.get("CI") == "true" and os.environ.get("GITHUB_ACTIONS") != "true":
            pytest.fail(f"must not be skipped here: {reason}")
        pytest.skip(reason)
