"""Arrays and labels come back from disk as they were written."""

import numpy as np
import pytest

from ooc_pf.storage import arrays


@pytest.mark.parametrize("length", [0, 1, 1000, (4 << 20) // 8, (4 << 20) // 8 + 1, 1_200_000])
def test_arrays_come_back_as_written(tmp_path, length):
    values = np.random.default_rng(1).random(length)
    with arrays.ArrayWriter(tmp_path, "a", np.float64) as writer:
        for part in np.array_split(values, 7):
            writer.append(part)
    assert np.array_equal(arrays.read_array(tmp_path, "a"), values)
    assert np.array_equal(arrays.read_array(tmp_path, "a", length // 3, length // 2), values[length // 3 : length // 2])


@pytest.mark.parametrize("labels", [[5, -3, 2**60], ["a", "", "héllo", "a b"], []])
def test_labels_come_back_as_written(tmp_path, labels):
    arrays.write_labels(tmp_path, labels)
    assert arrays.read_labels(tmp_path).tolist() == labels
