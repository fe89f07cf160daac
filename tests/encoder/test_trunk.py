import numpy as np

from sentigeo.encoder.trunk import join_shards, make_batch, pad, vectors_as_trunk


def test_pad():
    ids, mask = pad([np.array([5, 6, 7]), np.array([8])], filling=9)
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert mask.tolist() == [[True, True, True], [True, False, False]]


def test_rows_are_found_in_their_shards():
    # texts of 2, 1 and 3 tokens; the second shard holds text 2, then text 0
    first, second = np.array([[10.0]]), np.array([[20.0], [21.0], [22.0], [0.0], [1.0]])
    shards = [(np.array([1]), first), (np.array([2, 0]), second)]
    trunk = join_shards(1, shards, np.array([2, 1, 3]), "hash")
    assert [trunk[row].ravel().tolist() for row in range(3)] == [[0, 1], [10], [20, 21, 22]]


def test_vectors_are_texts_of_one_token():
    trunk = vectors_as_trunk(6, np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    hidden, mask = make_batch(trunk, np.array([1, 0]))
    assert hidden.tolist() == [[[3, 4]], [[1, 2]]]
    assert mask.all()


def test_share_of_tokens_keeps_cls_and_order():
    hidden = np.arange(200, dtype=np.float32)[:, None]
    trunk = join_shards(1, [(np.array([0, 1]), hidden)], np.array([160, 40]), "hash")
    states, mask = make_batch(trunk, np.array([0, 1]), 0.25, np.random.default_rng(0))
    assert states.shape == (2, 40, 1)
    assert mask.sum(1).tolist() == [40, 32]
    for row, start in ((0, 0), (1, 160)):
        seen = states[row][mask[row]].ravel().numpy()
        assert seen[0] == start
        assert (np.diff(seen) > 0).all()
    everything, _ = make_batch(trunk, np.array([0]))
    assert everything.ravel().tolist() == list(range(160))
