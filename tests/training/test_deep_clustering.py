import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import run_script
from safetensors.torch import load_file

from sentigeo.analysis.clusters import align_clusters, find_clusters
from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.errors import UserError
from sentigeo.training.deep_clustering import (
    SAVE_EVERY,
    ClusterTask,
    DeepRecipe,
    embed_all,
    train_clusters,
    warm_head,
)
from sentigeo.training.deep_encoder import (
    DeepEncoder,
    TopDeepEncoder,
    load_masked_lm,
    mask_tokens,
    sharpen,
)
from sentigeo.training.loop import load_state

RECIPE = DeepRecipe(epochs=7, learning_rate=2e-3, batch_size=16, clustering=1.0, masked=0.5)


def toy_texts(count=40):
    """Two groups of texts that share no word."""
    rng = np.random.default_rng(0)
    words = [["cat", "dog", "bird", "fish"], ["engine", "wheel", "road", "car"]]
    labels = np.arange(count) % 2
    return [" ".join(rng.choice(words[label], 8)) for label in labels], labels


def make_parts(folder, texts, k=2):
    """Return tokens, masked copies, and the centroids of the un-trained encoder."""
    encoder = load_encoder(str(folder))
    tokens = encode_texts(texts, encoder.tokenizer, 32)
    copies = [mask_tokens(tokens, encoder.tokenizer, seed) for seed in range(2)]
    model, _ = load_masked_lm(str(folder), None)
    width = model.config.hidden_size
    body = DeepEncoder(model, 1, np.zeros((k, width)), copies[0].words)
    vectors = embed_all(body, tokens).numpy()
    move_centroids(body, find_clusters(vectors, k).centroids)
    return body, tokens, copies


def move_centroids(body, centroids):
    body.centroids.data = torch.tensor(centroids, dtype=torch.float32)


@pytest.fixture
def toy(tiny_bert):
    texts, labels = toy_texts()
    return *make_parts(tiny_bert, texts), labels


def test_joint_training_recovers_two_groups_and_lowers_the_joint_loss(toy, tmp_path):
    body, tokens, copies, labels = toy
    warm_head(body, copies, replace(RECIPE, epochs=2))
    course = train_clusters(body, tokens, copies, replace(RECIPE, epochs=25), tmp_path / "s")
    members = np.array(course.members[-1])
    assert (align_clusters(labels, members) == labels).all()
    joint = np.array(course.clustering[1:]) + 0.5 * np.array(course.masked[1:])
    assert joint[-1] < joint[0]
    assert course.surety[-1] > course.surety[0]
    assert course.silhouette[-1] > course.silhouette[0]


def test_before_training_clusters_are_those_of_k_means(toy, tmp_path):
    body, tokens, copies, _ = toy
    expected = find_clusters(embed_all(body, tokens).numpy(), 2).members
    course = train_clusters(body, tokens, copies, replace(RECIPE, epochs=1), tmp_path / "s")
    assert course.members[0] == expected.tolist()
    assert np.isnan(course.clustering[0])
    assert len(course.members) == len(course.masked) == 2


def test_the_head_warms_up_alone(toy):
    body, _, copies, _ = toy
    before = {name: weight.clone() for name, weight in body.named_parameters()}
    losses = warm_head(body, copies, replace(RECIPE, epochs=5, learning_rate=1e-2))
    assert losses[-1] < losses[0]
    assert losses[0] == pytest.approx(np.log(len(copies[0].words)), rel=0.2)  # it guesses at first
    for name, weight in body.named_parameters():
        head = "base_model" not in name and "bert" not in name and name != "centroids"
        assert torch.equal(weight, before[name]) != head, name


def test_targets_come_from_the_whole_set_before_each_epoch(toy):
    body, tokens, copies, _ = toy
    body.train_parts(RECIPE.parts)
    task = ClusterTask(body, tokens, copies, RECIPE)
    for epoch in (0, 1):
        body.centroids.data += epoch
        assert sum(len(batch) for batch in task.begin(epoch)) == 40
        expected = sharpen(body.assign(embed_all(body, tokens)))
        assert task.targets.shape == (40, 2)
        assert torch.equal(task.targets, expected)


def test_one_loss_alone_leaves_the_rest_untouched(toy, tmp_path):
    body, tokens, copies, _ = toy
    head = [body.decoder.bias.clone(), body.centroids.clone()]
    train_clusters(body, tokens, [], replace(RECIPE, epochs=1, masked=0.0), tmp_path / "a")
    assert torch.equal(body.decoder.bias, head[0])
    moved = body.centroids.clone()
    assert not torch.equal(moved, head[1])
    course = train_clusters(
        body, tokens, copies, replace(RECIPE, epochs=2, clustering=0.0), tmp_path / "b"
    )
    assert torch.equal(body.centroids, moved)
    assert not torch.equal(body.decoder.bias, head[0])
    assert np.isnan(course.clustering).all()


def test_the_very_first_step_counts(toy, tmp_path):
    body, tokens, copies, _ = toy
    before = embed_all(body, tokens)
    train_clusters(body, tokens, copies, replace(RECIPE, epochs=1, batch_size=40), tmp_path / "s")
    assert not torch.allclose(embed_all(body, tokens), before, atol=1e-4)


class KilledError(Exception):
    pass


@pytest.mark.parametrize("after", [SAVE_EVERY - 2, SAVE_EVERY])
def test_stopped_training_resumes_to_the_same(tiny_bert, tmp_path, after):
    texts, epochs = toy_texts()[0], []

    def stop(epoch):
        if epoch == after:
            raise KilledError

    whole, *data = make_parts(tiny_bert, texts)
    expected = train_clusters(whole, *data, RECIPE, tmp_path / "whole")
    with pytest.raises(KilledError):
        train_clusters(make_parts(tiny_bert, texts)[0], *data, RECIPE, tmp_path / "cut", stop)
    resumed = make_parts(tiny_bert, texts)[0]
    found = train_clusters(resumed, *data, RECIPE, tmp_path / "cut", epochs.append)
    assert epochs[0] == (SAVE_EVERY if after == SAVE_EVERY else 0)
    assert str(vars(found)) == str(vars(expected))  # as text, because no NaN equals another
    for (name, weight), other in zip(
        whole.state_dict().items(), resumed.state_dict().values(), strict=True
    ):
        assert torch.equal(weight, other), name


def test_a_trunk_trains_as_the_whole_encoder_does(tiny_bert, tmp_path):
    texts, _ = toy_texts()
    whole, tokens, copies = make_parts(tiny_bert, texts)
    centroids = whole.centroids.detach().numpy().copy()
    encoder, store = load_encoder(str(tiny_bert)), Store(tmp_path / "store")
    trunk = extract(tokens, encoder, store, [], keep=[1])[1][1]
    hidden = [
        replace(copy, source=extract(copy.source, encoder, store, [], keep=[1])[1][1])
        for copy in copies
    ]
    model, _ = load_masked_lm(str(tiny_bert), None)
    top = TopDeepEncoder(model, 1, centroids, copies[0].words)
    first = train_clusters(whole, tokens, copies, RECIPE, tmp_path / "a")
    second = train_clusters(top, trunk, hidden, RECIPE, tmp_path / "b")
    assert first.members == second.members
    assert np.allclose(first.masked[1:], second.masked[1:], atol=1e-4)
    assert torch.allclose(embed_all(whole, tokens), embed_all(top, trunk), atol=1e-3)


def test_one_cluster_and_texts_with_nothing_to_mask(tiny_bert, tmp_path):
    body, tokens, copies = make_parts(tiny_bert, ["", "a", "film", "of course"], k=1)
    course = train_clusters(body, tokens, copies, RECIPE, tmp_path / "s")
    assert course.members[-1] == [0, 0, 0, 0]
    assert course.clustering[1:] == [0.0] * 7
    assert np.isnan(course.silhouette).all()
    assert np.isfinite(course.masked[1:]).all()


def test_an_empty_cluster_does_no_harm(toy, tmp_path):
    body, tokens, copies, _ = toy
    move_centroids(body, np.stack([body.centroids[0].detach().numpy(), np.full(32, 1e6)]))
    course = train_clusters(body, tokens, copies, RECIPE, tmp_path / "s")
    assert set(course.members[0]) == {0}
    assert np.isfinite(course.clustering[1:]).all()


def test_more_clusters_than_texts(tiny_bert):
    with pytest.raises(UserError, match="k = 5 clusters are not possible"):
        make_parts(tiny_bert, ["cat", "dog"], k=5)


def test_loss_that_is_no_number(toy, tmp_path):
    body, tokens, copies, _ = toy
    body.centroids.data[0, 0] = float("nan")
    with pytest.raises(UserError, match="no longer a number in epoch 1"):
        train_clusters(body, tokens, copies, RECIPE, tmp_path / "s")


def train_toy(model, folder, kill=False):
    """Train with one thread; return the final weights."""
    torch.set_num_threads(1)
    body, tokens, copies = make_parts(model, toy_texts(22)[0])  # the last batch cannot be halved

    def on_epoch(epoch):
        if kill and epoch == SAVE_EVERY:
            os.kill(os.getpid(), signal.SIGKILL)

    warm_head(body, copies, replace(RECIPE, epochs=2))
    train_clusters(body, tokens, copies, RECIPE, folder / "s", on_epoch)
    return dict(body.state_dict())


def test_sigkill_then_the_same_and_two_processes_train_one_model(tiny_bert, tmp_path):
    alone = train_toy(tiny_bert, tmp_path / "one")
    model, cut, two = str(tiny_bert), tmp_path / "cut", tmp_path / "two"
    call = f"train_toy({model!r}, Path({str(cut)!r}), kill=True)"
    run = run_script("test_deep_clustering", "train_toy", call)
    assert run.returncode == -signal.SIGKILL, run.stderr[-3000:]
    assert load_state(cut / "s")[1]["epochs"] == SAVE_EVERY
    resumed = train_toy(tiny_bert, cut)
    call = (
        f"two = Path({str(two)!r}); save_file(train_toy({model!r}, two), two / os.environ['RANK'])"
    )
    run = run_script("test_deep_clustering", "train_toy", call, processes=2)
    assert run.returncode == 0, run.stderr[-3000:]
    first, second = (load_file(two / rank) for rank in "01")
    for name, weight in alone.items():
        assert torch.equal(resumed[name], weight), name
        assert torch.equal(first[name], second[name]), name
        assert torch.allclose(first[name], weight, atol=2e-3), name
