import numpy as np
import pytest

from sentigeo.cache import Store, save_arrays
from sentigeo.encoder.vectors import Trunk, Vectors, open_vectors, resolve_layer
from sentigeo.errors import UserError


@pytest.fixture
def stored(tmp_path):
    """Three texts, layers 1 and 2 of an encoder of two, in two shards that mix up the rows."""
    store = Store(tmp_path)
    folders = [
        store.put("vectors", {"shard": number}, lambda part, a=arrays: save_arrays(part, a))
        for number, arrays in enumerate(
            [
                {"rows": np.array([2, 0]), "vectors": np.array([[[20.0], [0.0]], [[21.0], [1.0]]])},
                {"rows": np.array([1]), "vectors": np.array([[[10.0]], [[11.0]]])},
            ]
        )
    ]
    return Vectors(3, 2, ((1, "cls"), (2, "cls")), tuple(folders)), tmp_path


def test_rows_come_in_their_own_order(stored):
    vectors, _ = stored
    assert vectors.matrix(1).ravel().tolist() == [0, 10, 20]
    assert vectors.matrix(-1).ravel().tolist() == [1, 11, 21]
    assert vectors.matrix([1, 2]).ravel().tolist() == [0.5, 10.5, 20.5]
    assert vectors.matrix(-1).dtype == np.float32


def test_what_was_not_extracted_is_looked_up_below(stored):
    below, _ = stored
    upper = Vectors(3, 2, ((2, "cls"),), below.shards[:0], below)
    assert upper.matrix(1).ravel().tolist() == [0, 10, 20]
    with pytest.raises(UserError, match="mean vectors of layer 1 were not extracted"):
        upper.matrix(1, "mean")


def test_description_leads_back(stored):
    vectors, root = stored
    tuned = Vectors(3, 2, ((2, "cls"),), vectors.shards, vectors)
    assert open_vectors(tuned.describe(root), root) == tuned


def test_missing_or_damaged_shards_are_said(stored):
    vectors, root = stored
    (vectors.shards[0] / "vectors.npy").write_bytes(b"oops")
    with pytest.raises(UserError, match="missing or damaged: run 'make report' again"):
        open_vectors(vectors.describe(root), root)


@pytest.mark.parametrize(("layer", "number"), [(0, 0), (6, 6), (-1, 6), (-7, 0)])
def test_layers_count_from_either_end(layer, number):
    assert resolve_layer(layer, 6) == number


@pytest.mark.parametrize("layer", [7, -8])
def test_layers_that_are_not_there(layer):
    with pytest.raises(UserError, match=f"There is no layer {layer}"):
        resolve_layer(layer, 6)


def test_hidden_states_are_found_in_their_shards():
    # texts of 2, 1 and 3 tokens; the second shard holds text 2, then text 0
    first, second = np.array([[10.0]]), np.array([[20.0], [21.0], [22.0], [0.0], [1.0]])
    shards = [(np.array([1]), first), (np.array([2, 0]), second)]
    trunk = Trunk.join(1, shards, np.array([2, 1, 3]), "hash")
    assert [trunk[row].ravel().tolist() for row in range(3)] == [[0, 1], [10], [20, 21, 22]]
