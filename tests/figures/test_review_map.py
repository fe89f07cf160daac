import numpy as np
import pandas as pd
from test_map_page import read_data, unpack

from sentigeo.analysis.clusters import Clusters, NamedClusters
from sentigeo.encoder.vectors import Space, Vectors
from sentigeo.figures.interactive import MOST, clean, colour_reviews, make_review_map

NOTHING = Vectors(0, 0, (), ())


def make_space(texts):
    """A training review, then test reviews; the classifier is wrong about the second of them."""
    count = len(texts)
    corpus = pd.DataFrame(
        {"text": ["seen", *texts], "label": [0, *(row % 2 for row in range(count))],
         "part": ["train", *["test"] * count]}
    )  # fmt: skip
    answers = np.eye(2)[[0, 0, *(row % 2 for row in range(2, count))][:count]]
    return Space(corpus, ["bad", "good"], NOTHING, NOTHING, {"test": answers})


def make_clusters(members):
    own = np.array(members)
    names = ["cluster 1 (good)", "cluster 2 (bad)"]
    return NamedClusters(Clusters(np.zeros((2, 1)), own, 0.0), {0: 1, 1: 0}, names, own, 1 - own)


def make(texts):
    count = len(texts)
    clusters = {
        "before": make_clusters([0] * count),
        "after": make_clusters([row % 2 for row in range(count)]),
    }
    line = np.arange(count)[:, None] * [1.0, 0.0]
    points = {("before", "t-SNE"): line, ("after", "t-SNE"): -line, ("before", "PCA"): line}
    return make_review_map(make_space(texts), clusters, points)


def test_test_reviews_are_on_every_map_with_all_that_is_known_about_them():
    data = read_data(make(["one", "two<br /><br />lines", "<b>three</b>"]))
    assert data["texts"] == ["one", "two lines", "<b>three</b>"]
    assert [own["name"] for own in data["layouts"]] == [
        "t-SNE, before", "t-SNE, after", "PCA, before"
    ]  # fmt: skip
    assert unpack(data["layouts"][1]["points"])[::2].tolist() == [65_535, 32_768, 0]
    groups = {own["name"]: unpack(own["groups"]).tolist() for own in data["colourings"]}
    assert groups == {
        "label": [0, 1, 0], "cluster before": [0, 0, 0], "cluster after": [0, 1, 0],
        "classifier": [0, 1, 0],
    }  # fmt: skip


def test_names_say_which_time_a_cluster_belongs_to():
    found = colour_reviews(make_space(["a", "b"]), {"before": make_clusters([0, 1])})
    assert found["cluster before"].names == ["before: cluster 1 (good)", "before: cluster 2 (bad)"]
    assert found["label"].names == ["bad", "good"]
    assert found["classifier"].names == ["classifier right", "classifier wrong"]


def test_no_review_can_end_the_script():
    page = make(["</script><script>alert(1)</script>", "fine"])
    assert "<script>alert" not in page
    assert read_data(page)["texts"][0] == "</script><script>alert(1)</script>"


def test_the_page_stays_below_a_megabyte():
    for count, width in ((1_000, 400), (2_000, 360), (20_000, 180)):
        page = make([f"{row} " + "<br />word " * 100 for row in range(count)])
        data = read_data(page)
        assert len(page.encode()) < 1_000_000
        assert data["width"] == width
        assert len(data["texts"]) == min(count, MOST)


def test_line_breaks_become_spaces():
    assert clean(" a<br />b<BR>c \n d ") == "a b c d"
    assert clean("5 < 6") == "5 < 6"
