import re

import numpy as np
from helpers import store_corpus
from map_reader import read_data, unpack

from sentigeo.analysis.clusters import Clusters, NamedClusters
from sentigeo.cache import Store
from sentigeo.encoder.corpus import CorpusVectors
from sentigeo.encoder.vectors import Vectors
from sentigeo.figures.interactive import (
    MOST,
    colour_reviews,
    fill_page,
    make_map_page,
    make_review_map,
)
from sentigeo.figures.style import Colouring
from sentigeo.hashes import import_closure, read_modules

# A cross: a middle, then right, left, up and down of it, and one more far to the right.
CROSS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [2, 0.1]])
TEXTS = ["Middle: a fine film", "Right: a dull FILM", "Left", "Up", "Down", "Far: " + 500 * "x"]
LABEL = Colouring(np.array([0, 1, 0, 1, 0, 1]), ["negative", "positive"], ["#D55E00", "#0072B2"])
CLUSTER = Colouring(np.array([0, 0, 0, 1, 1, 2]), ["one", "two", "three"],
                    ["#117733", "#AA4499", "#332288"])  # fmt: skip
LAYOUTS = {"before": CROSS, "after": CROSS[::-1] * [3, 1]}


def test_facts_come_back_and_lone_surrogates_do_not_stop_a_file():
    facts = {
        "texts": ["</script><!--", "\u2028 é 語", "bad \ud83d", "pair \ud83d\ude00", "\x00\r\n"]
    }
    page = fill_page("map.html.jinja", "Half a \udc00 sign", facts)
    assert "Half a \ufffd sign" in page
    found = read_data(page)
    assert found["texts"] == [*facts["texts"][:2], "bad \ufffd", "pair 😀", "\x00\r\n"]
    assert page.encode("utf-8").decode("utf-8") == page


def make(texts=TEXTS, layouts=LAYOUTS, label=LABEL):
    return make_map_page("Films", texts, layouts, {"label": label, "cluster": CLUSTER})


def test_the_page_holds_texts_points_and_groups():
    data = read_data(make())
    assert data["texts"] == [*TEXTS[:5], TEXTS[5][:400]]
    assert data["lengths"] == {"5": 505}
    assert [own["name"] for own in data["layouts"]] == ["before", "after"]
    found = unpack(data["layouts"][0]["points"]).reshape(-1, 2) / 65_535 * 3  # x is 3 units wide
    np.testing.assert_allclose(found, CROSS + 1, atol=3 / 65_535)
    assert [own["name"] for own in data["colourings"]] == ["label", "cluster"]
    assert unpack(data["colourings"][1]["groups"]).tolist() == [0, 0, 0, 1, 1, 2]
    assert data["colourings"][0]["names"] == ["negative", "positive"]
    assert data["colourings"][0]["colours"] == ["#D55E00", "#0072B2"]


def test_points_at_one_place_and_numbers_of_any_size():
    same = read_data(make(layouts={"same": np.full((6, 2), 7.0)}))
    assert unpack(same["layouts"][0]["points"]).tolist() == [0] * 12
    tiny = read_data(make(layouts={"tiny": (CROSS * 1e-30).astype(np.float32)}))
    assert unpack(tiny["layouts"][0]["points"]).max() == 65_535


def test_twenty_thousand_short_texts_make_a_small_file():
    rng = np.random.default_rng(0)
    groups = rng.integers(20, size=20_000)
    names = [f"cluster {number + 1}" for number in range(20)]
    texts = [f"Text {row}, as short as a sentence of a review is" for row in range(20_000)]
    layouts = {"t-SNE": rng.normal(size=(20_000, 2)) + groups[:, None]}
    colouring = Colouring(groups, names, ["#335577"] * 20)
    page = make_map_page("Many", texts, layouts, {"cluster": colouring})
    assert len(page.encode()) - sum(len(text) + 3 for text in texts) < 300_000
    assert not re.search(r"(src|href)=", page)  # nothing is loaded


def test_pages_are_made_without_torch():
    code = read_modules(import_closure(["sentigeo.figures.interactive"]))
    assert not re.search(r"(import|from) torch", "".join(code.values()))


NOTHING = Vectors(0, 0, (), ())


def make_vectors(folder, texts):
    """A training review, then test reviews; the classifier is wrong about the second of them."""
    count = len(texts)
    labels = [row % 2 for row in range(count)]
    parts = ["train", *["test"] * count]
    corpus = store_corpus(Store(folder), ["seen", *texts], [0, *labels], parts, ["bad", "good"])
    answers = np.eye(2)[[0, 0, *labels[2:]][:count]]
    return CorpusVectors(corpus, NOTHING, NOTHING, {"test": answers}, None)


def make_clusters(members):
    own = np.array(members)
    names = ["cluster 1 (good)", "cluster 2 (bad)"]
    return NamedClusters(Clusters(np.zeros((2, 1)), own, 0.0), {0: 1, 1: 0}, names, own, 1 - own)


def make_reviews(folder, texts):
    count = len(texts)
    clusters = {
        "before": make_clusters([0] * count),
        "after": make_clusters([row % 2 for row in range(count)]),
    }
    line = np.arange(count)[:, None] * [1.0, 0.0]
    points = {("before", "t-SNE"): line, ("after", "t-SNE"): -line, ("before", "PCA"): line}
    return make_review_map(make_vectors(folder, texts), clusters, points)


def test_test_reviews_are_on_every_map_with_all_that_is_known_about_them(tmp_path):
    texts = [" one \n", "two<br /><br />lines<BR>and 5 < 6", "<b>three</b>"]
    data = read_data(make_reviews(tmp_path, texts))
    assert data["texts"] == ["one", "two lines and 5 < 6", "<b>three</b>"]
    assert [own["name"] for own in data["layouts"]] == [
        "t-SNE, pretrained", "t-SNE, fine-tuned", "PCA, pretrained"
    ]  # fmt: skip
    assert unpack(data["layouts"][1]["points"])[::2].tolist() == [65_535, 32_768, 0]
    groups = {own["name"]: unpack(own["groups"]).tolist() for own in data["colourings"]}
    assert groups == {
        "label": [0, 1, 0], "cluster, pretrained": [0, 0, 0], "cluster, fine-tuned": [0, 1, 0],
        "classifier": [0, 1, 0],
    }  # fmt: skip


def test_names_say_which_stage_a_cluster_belongs_to(tmp_path):
    found = colour_reviews(make_vectors(tmp_path, ["a", "b"]), {"before": make_clusters([0, 1])})
    assert found["cluster, pretrained"].names == [
        "pretrained: cluster 1 (good)", "pretrained: cluster 2 (bad)"
    ]  # fmt: skip
    assert found["label"].names == ["bad", "good"]
    assert found["classifier"].names == ["classifier right", "classifier wrong"]


def test_no_review_can_end_the_script(tmp_path):
    page = make_reviews(tmp_path, ["</script><script>alert(1)</script>", "fine"])
    assert "<script>alert" not in page
    assert read_data(page)["texts"][0] == "</script><script>alert(1)</script>"


def test_the_page_stays_below_a_megabyte(tmp_path):
    for count, width in ((1_000, 400), (2_000, 360), (5_000, 180)):
        page = make_reviews(tmp_path, [f"{row} " + "<br />word " * 100 for row in range(count)])
        data = read_data(page)
        assert len(page.encode()) < 1_000_000
        assert data["width"] == width
        assert len(data["texts"]) == min(count, MOST)
