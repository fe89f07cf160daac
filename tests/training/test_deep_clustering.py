from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import load_masked_lm
from toy_training import CLUSTER_RECIPE as RECIPE
from toy_training import group_texts, make_parts, move_centroids

from sentigeo.analysis.clusters import align_clusters, find_clusters
from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.errors import UserError
from sentigeo.training.deep_clustering import (
    SAVE_EVERY,
    ClusterTask,
    embed_all,
    sharpen,
    train_clusters,
    warm_head,
)
from sentigeo.training.deep_encoder import (
    TopDeepEncoder,
    assign_softly,
)


@pytest.fixture
def toy(tiny_bert):
    texts, labels = group_texts()
    return *make_parts(tiny_bert, texts), labels


def test_joint_training_recovers_two_groups_and_lowers_the_joint_loss(toy, tmp_path):
    body, tokens, copies, labels = toy
    warm_head(body, copies, replace(RECIPE, epochs=2))
    course = train_clusters(body, tokens, copies, replace(RECIPE, epochs=25), tmp_path / "s")
    members = np.array(course.members[-1])
    assert (align_clusters(labels, members) == labels).all()
    joint = np.array(course.clustering[1:]) + 0.5 * np.array(course.masked[1:])
    assert joint[-1] < joint[0]
    assert course.confidence[-1] > course.confidence[0]
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
    body.train_parts({"layers", "head", "centroids"})
    task = ClusterTask(body, tokens, copies, RECIPE)
    for epoch in (0, 1):
        body.centroids.data += epoch
        assert sum(len(batch) for batch in task.begin(epoch)) == 40
        expected = sharpen(assign_softly(embed_all(body, tokens), body.centroids))
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


STEPS = 3  # of an epoch


def count_steps(body, most=None):
    """Note the steps of a body; fail in the one after so many."""
    steps = []

    def note(*_):
        if len(steps) == most:
            raise KilledError
        steps.append(1)

    body.register_forward_pre_hook(note)
    return steps


@pytest.mark.parametrize("epochs", [SAVE_EVERY - 2, SAVE_EVERY])
def test_stopped_training_resumes_to_the_same(tiny_bert, tmp_path, epochs):
    texts = group_texts()[0]
    whole, *data = make_parts(tiny_bert, texts)
    expected = train_clusters(whole, *data, RECIPE, tmp_path / "whole")
    cut, resumed = (make_parts(tiny_bert, texts)[0] for _ in range(2))
    count_steps(cut, most=STEPS * epochs + 1)
    with pytest.raises(KilledError):
        train_clusters(cut, *data, RECIPE, tmp_path / "cut")
    steps = count_steps(resumed)
    found = train_clusters(resumed, *data, RECIPE, tmp_path / "cut")
    assert len(steps) == STEPS * (RECIPE.epochs - (SAVE_EVERY if epochs == SAVE_EVERY else 0))
    assert str(vars(found)) == str(vars(expected))  # as text, because no NaN equals another
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name


def test_a_trunk_trains_as_the_whole_encoder_does(tiny_bert, tmp_path):
    texts, _ = group_texts()
    whole, tokens, copies = make_parts(tiny_bert, texts)
    centroids = whole.centroids.detach().numpy().copy()
    encoder, store = load_encoder(str(tiny_bert)), Store(tmp_path / "store")
    trunk = extract(tokens, encoder, store, [], keep=[1])[1][1]
    hidden = [
        replace(copy, source=extract(copy.source, encoder, store, [], keep=[1])[1][1])
        for copy in copies
    ]
    model, _ = load_masked_lm(tiny_bert)
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
