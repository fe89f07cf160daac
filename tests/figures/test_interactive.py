import base64
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from helpers import store_corpus
from map_reader import Reader, read_data, unpack

from sentigeo.analysis.clusters import Clusters, NamedClusters
from sentigeo.attention.attention import Attention
from sentigeo.cache import Store
from sentigeo.encoder.corpus_vectors import CorpusVectors
from sentigeo.encoder.vectors import Vectors
from sentigeo.errors import UserError
from sentigeo.figures.interactive import (
    MOST,
    colour_reviews,
    fill_page,
    make_map_page,
    make_page,
    make_review_map,
)
from sentigeo.figures.style import Colouring

# A cross: a middle, then right, left, up and down of it, and one more far to the right.
CROSS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [2, 0.1]])
TEXTS = ["Middle: a fine film", "Right: a dull FILM", "Left", "Up", "Down", "Far: " + 500 * "x"]
LABEL = Colouring(np.array([0, 1, 0, 1, 0, 1]), ["negative", "positive"], ["#D55E00", "#0072B2"])
CLUSTER = Colouring(np.array([0, 0, 0, 1, 1, 2]), ["one", "two", "three"],
                    ["#117733", "#AA4499", "#332288"])  # fmt: skip
LAYOUTS = {"before": CROSS, "after": CROSS[::-1] * [3, 1]}
TIMER = """
  window.took = [];
  window.requestAnimationFrame = (ask => does => ask(time => {
    const begun = performance.now();
    does(time);
    took.push(performance.now() - begun);
  }))(window.requestAnimationFrame.bind(window));
"""
ESCAPE, ENTER, RIGHT, DOWN = "\ue00c", "\ue007", "\ue014", "\ue015"  # keys, as WebDriver has them


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
    page = make_many(20_000)
    texts = sum(len(text) + 3 for text in read_data(page)["texts"])
    assert len(page.encode()) - texts < 300_000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"texts": []}, "There are no texts to put on a map."),
        ({"texts": TEXTS[:5]}, r"'before' has the shape \(6, 2\), but 5 texts need \(5, 2\)"),
        ({"layouts": {"flat": CROSS * [1, np.nan]}}, "Layout 'flat' holds coordinates that"),
        ({"label": Colouring(np.zeros(5, int), ["a"], ["#000000"])}, "'label' has 5 groups for 6"),
        ({"label": Colouring(np.zeros(6, int), ["a"], [])}, "'label' has 0 colours for 1 groups"),
        ({"label": Colouring(np.arange(6) - 1, ["a"], ["#000000"])}, "groups from -1 to 4, but"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error_that_says_so(change, said):
    with pytest.raises(UserError, match=said):
        make(**change)


WORDS = ["[CLS]", "</script><b>good</b>", "[SEP]"]


def make_attention(seed):
    weights = np.random.default_rng(seed).dirichlet(np.ones(3), size=(2, 4, 3))
    return Attention(WORDS, np.array([True, False, True]), weights)


def test_the_attention_page_is_complete_and_no_text_breaks_it():
    own = make_attention(0)
    page = make_page([{"before": own, "after": make_attention(1)}], "Heads & <tails>")
    assert "Heads &amp; &lt;tails&gt;" in page
    assert "<b>good" not in page
    assert page.count("</script>") == 2
    assert not re.search(r"(src|href)=", page)  # nothing is loaded
    data = read_data(page)
    assert (data["layers"], data["heads"]) == (2, 4)
    assert data["texts"][0]["words"] == WORDS
    weights = data["texts"][0]["weights"]
    assert list(weights) == ["pretrained", "fine-tuned"]
    found = np.frombuffer(base64.b64decode(weights["pretrained"]), np.uint8) / 255
    assert np.abs(found.reshape(2, 4, 3, 3) - own.weights).max() < 0.002


def test_pages_are_made_without_torch():
    check = "import sys, sentigeo.figures.interactive; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


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
    for count, width in ((1_000, 400), (2_000, 360), (20_000, 180)):
        page = make_reviews(tmp_path, [f"{row} " + "<br />word " * 100 for row in range(count)])
        data = read_data(page)
        assert len(page.encode()) < 1_000_000
        assert data["width"] == width
        assert len(data["texts"]) == min(count, MOST)


@pytest.fixture
def reader(browser, tmp_path):
    reader = Reader(browser, tmp_path)
    yield reader
    assert browser.get_log("browser") == []  # no page says anything on the console


def on_white(colour, opacity=0.82):
    shares = bytes.fromhex(colour[1:])
    return pytest.approx([255 + (own - 255) * opacity for own in shares], abs=3)


@pytest.mark.browser
def test_texts_can_have_numbers_of_their_own(reader):
    rows = np.array([2, 5, 7, 11, 13, 70_000])
    reader.open(make_map_page("Gaps", TEXTS, LAYOUTS, {"label": LABEL}, rows))
    reader.point(5)
    assert reader.text("#tip .facts").split("\n")[0] == "Row 70,000"


@pytest.mark.browser
def test_pointing_at_a_point_shows_its_text(reader):
    reader.open(make())
    assert not reader.find("#tip").is_displayed()
    reader.point(1)
    assert reader.text("#tip .text") == "Right: a dull FILM"
    assert reader.text("#tip .facts").split("\n") == ["Row 2", "positive", "one"]
    reader.hears("Row 2, positive, one: Right: a dull FILM")
    reader.point(5)
    assert reader.text("#tip .text + .note") == "The first 400 of 505 characters"
    x, y = reader.place(1)
    reader.mouse("mouseMoved", x + 40, y + 40)
    assert not reader.find("#tip").is_displayed()


@pytest.mark.browser
def test_clicks_keep_texts_and_each_can_be_removed(reader):
    reader.open(make())
    for row in (3, 1, 3):
        reader.point(row, click=True)
    assert [item.text for item in reader.all("#kept .text")] == ["Up", "Right: a dull FILM"]
    assert reader.text("#keeping") == "Kept texts (2)"
    reader.click("#kept [aria-label='Remove row 4']")
    assert [item.text for item in reader.all("#kept .text")] == ["Right: a dull FILM"]
    reader.click("#kept [aria-label='Show row 2 on the map']")
    assert reader.text("#tip .text") == "Right: a dull FILM"
    reader.click("#empty")
    assert reader.all("#kept li") == []
    assert reader.find("#none").is_displayed()


@pytest.mark.browser
def test_search_counts_marks_and_dims(reader):
    reader.open(make())
    reader.press("#search", "film")
    assert reader.text("#found") == "2 matches"
    assert reader.colour(0) == on_white("#D55E00", 0.95)
    assert reader.colour(2) == on_white("#D55E00", 0.13)
    assert [own.text for own in reader.all("#legend .count")] == ["1 of 3", "1 of 3"]
    reader.press("#search", ENTER)
    assert reader.text("#found") == "1 of 2 matches"
    reader.press("#search", ENTER)
    assert reader.text("#tip .text mark") == "FILM"
    reader.press("#search", ENTER)  # and round again
    assert reader.text("#tip .text") == "Middle: a fine film"
    reader.press("#search", ESCAPE + ESCAPE)
    assert reader.text("#found") == ""
    assert reader.colour(2) == on_white("#D55E00")


@pytest.mark.browser
def test_search_takes_signs_as_they_are(reader):
    reader.open(make(["a.b (c)", "axb", "[\\^$*+?{}|/-]", "É", "x", "y"]))
    for sought, found in {".b (": 1, "[\\^$*+?{}|/-]": 1, "é": 1, "zz": 0}.items():
        reader.find("#search").clear()
        reader.press("#search", sought)
        assert reader.text("#found").split()[0] == str(found)


@pytest.mark.browser
def test_colours_and_layouts_change(reader):
    reader.open(make())
    assert reader.colour(1) == on_white("#0072B2")
    reader.choose("#colouring", "cluster")
    assert reader.colour(1) == on_white("#117733")
    assert [own.text for own in reader.all("#legend .name")] == ["one", "two", "three"]
    assert [own.text for own in reader.all("#legend .count")] == ["3", "2", "1"]
    assert reader.place(5)[0] > reader.place(0)[0]
    reader.choose("#layout", "after")
    assert reader.place(5)[0] < reader.place(0)[0]
    reader.point(5)
    assert reader.text("#tip .facts").split("\n") == ["Row 6", "positive", "three"]


@pytest.mark.browser
def test_one_layout_and_one_colouring_leave_nothing_to_choose(reader):
    reader.open(make_map_page("One", ["only"], {"x": np.zeros((1, 2))}, {"all": one_group(1)}))
    assert not reader.find("#layout").is_displayed()
    assert not reader.find("#colouring").is_displayed()
    reader.point(0)
    assert reader.text("#tip .text") == "only"


@pytest.mark.browser
def test_the_legend_hides_groups(reader):
    reader.open(make())
    reader.click("#legend li:nth-child(2) button")
    assert reader.find("#legend li:nth-child(2) button").get_attribute("aria-pressed") == "false"
    assert reader.colour(1) == [255, 255, 255]
    reader.point(1)
    assert not reader.find("#tip").is_displayed()
    reader.press("#search", "film")
    assert reader.text("#found") == "1 match, 1 hidden"
    reader.click("#all")
    assert reader.text("#found") == "2 matches"


@pytest.mark.browser
def test_keys_move_over_the_map(reader):
    reader.open(make())
    reader.press("body", "/")
    reader.press("#search", DOWN)
    canvas = reader.browser.switch_to.active_element
    assert canvas.get_attribute("id") == "points"
    reader.point(0)
    steps = {RIGHT: "Right: a dull FILM", RIGHT + DOWN: "Far"}
    for keys, text in steps.items():
        reader.press("canvas", keys)
        assert reader.text("#tip .text").startswith(text)
    reader.press("canvas", ENTER)
    assert len(reader.all("#kept li")) == 1
    before = reader.place(0)[0] - reader.place(2)[0]
    reader.press("canvas", "+")
    assert reader.place(0)[0] - reader.place(2)[0] == pytest.approx(1.5 * before)
    reader.press("canvas", "0")
    assert reader.place(0)[0] - reader.place(2)[0] == pytest.approx(before)
    reader.press("canvas", ESCAPE)
    assert not reader.find("#tip").is_displayed()


@pytest.mark.browser
def test_the_wheel_zooms_where_the_pointer_is_and_dragging_moves(reader):
    reader.open(make())
    x, y = reader.place(3)
    apart = reader.place(1)[0] - reader.place(2)[0]
    reader.tell("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-500)
    reader.wait()
    assert reader.place(3) == pytest.approx([x, y], abs=1)
    assert reader.place(1)[0] - reader.place(2)[0] > 1.5 * apart
    reader.mouse("mousePressed", x, y)
    reader.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x - 60, y=y + 30, buttons=1)
    reader.mouse("mouseReleased", x - 60, y + 30)
    reader.wait()
    assert reader.place(3) == pytest.approx([x - 60, y + 30], abs=1)
    assert reader.all("#kept li") == []  # a drag is no click


@pytest.mark.browser
def test_no_text_can_do_anything(reader):
    attack = "<script>window.hacked = 1; alert(1)</script><img src=x onerror='hacked = 1'>\"'`${1}"
    arabic, turned = "فيلم جميل <b>", "\u202egnorw si siht\u2066"
    names = ["</script><script>hacked = 1</script>", "\u202eturned"]
    label = Colouring(LABEL.groups, names, LABEL.colours)
    texts = [attack, arabic, turned, "</textarea>--><!--", "\ud800 half", "\u2028"]
    reader.open(make(texts, label=label))
    for row in range(5):
        reader.point(row, click=True)
    assert [item.get_property("textContent") for item in reader.all("#kept .text")] == [
        *texts[:4], "\ufffd half"
    ]  # fmt: skip
    assert reader.text("#legend .name") == names[0]
    assert reader.run("return window.hacked === undefined")
    assert reader.all("img, b, textarea") == []
    assert reader.find("#kept li:nth-child(2) .text").value_of_css_property("direction") == "rtl"
    for selector in ("body", "#kept li:nth-child(2) .facts", "#tip"):
        assert reader.find(selector).value_of_css_property("direction") == "ltr"
    for selector in ("#kept li:nth-child(3) .text", "#kept bdi", "#legend .name"):
        assert reader.find(selector).value_of_css_property("unicode-bidi") == "isolate"


@pytest.mark.browser
def test_the_page_requests_nothing_but_itself(reader):
    reader.open(make(["http://example.org/a.png"] * 6))
    reader.point(0, click=True)
    messages = [json.loads(e["message"])["message"] for e in reader.browser.get_log("performance")]
    asked = [own["params"] for own in messages if own["method"] == "Network.requestWillBeSent"]
    assert [own["request"]["url"] for own in asked] == [reader.file.as_uri()]
    assert not re.search(r"(src|href)=", make())


@pytest.mark.browser
def test_a_phone_needs_no_sideways_scrolling_and_taps_keep(reader):
    page = make_map_page("W" * 80, ["w" * 300, *TEXTS[1:]], LAYOUTS, {"g" * 90: LABEL})
    reader.open(page, 360, 740, mobile=True, deviceScaleFactor=2)
    reader.tell("Emulation.setTouchEmulationEnabled", enabled=True)
    reader.tap(0)
    assert reader.text("#tip .note") == "Tap again to keep"
    assert reader.all("#kept li") == []
    reader.tap(0)
    assert len(reader.all("#kept li")) == 1
    reader.tell("Emulation.setTouchEmulationEnabled", enabled=False)
    assert reader.run("return document.documentElement.scrollWidth") == 360
    tip = reader.find("#tip").rect
    assert tip["x"] >= 0
    assert tip["x"] + tip["width"] <= 360


@pytest.mark.browser
def test_two_fingers_zoom(reader):
    reader.open(make())
    apart = reader.place(1)[0] - reader.place(2)[0]
    reader.touch("touchStart", (300, 400), (400, 400))
    for step in range(1, 6):
        reader.touch("touchMove", (300 - 10 * step, 400), (400 + 10 * step, 400))
    reader.touch("touchEnd")
    reader.wait()
    assert reader.place(1)[0] - reader.place(2)[0] == pytest.approx(2 * apart)
    assert reader.all("#kept li") == []


@pytest.mark.browser
def test_points_travel_to_another_layout(reader):
    reader.open(make())
    reader.tell("Emulation.setEmulatedMedia", features=[])
    path = reader.browser.execute_async_script("""
        const found = [], select = document.querySelector("#layout"), begun = performance.now();
        const watch = () => {
          found.push(sentigeoMap.screenPosition(5)[0]);
          if (performance.now() < begun + 1000) requestAnimationFrame(watch);
          else arguments[0](found);
        };
        select.value = "1";
        select.dispatchEvent(new Event("change"));
        watch();""")
    assert len(set(path)) > 3
    assert path == sorted(path, reverse=True)
    reader.point(5)
    assert reader.text("#tip .text").startswith("Far")


@pytest.mark.browser
def test_dark_readers_get_a_dark_map_with_legible_points(reader):
    reader.open(make_map_page("Dark", TEXTS, LAYOUTS, {"one": one_group(6, "#000000")}))
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    reader.tell("Emulation.setEmulatedMedia", features=features)
    reader.wait()
    ground = reader.run("return Array.from(canvas.getContext('2d').getImageData(3, 3, 1, 1).data)")
    assert max(ground[:3]) < 40
    assert min(reader.colour(0)) > 70


@pytest.mark.browser
def test_twenty_thousand_points_move_smoothly(reader):
    timer = reader.tell("Page.addScriptToEvaluateOnNewDocument", source=TIMER)
    reader.open(make_many(20_000), 1400, 900)
    reader.tell("Page.removeScriptToEvaluateOnNewDocument", **timer)
    reader.run("took.length = 0")
    reader.mouse("mousePressed", 500, 500)
    for step in range(1, 31):
        reader.tell(
            "Input.dispatchMouseEvent", type="mouseMoved", x=500 + 6 * step, y=500, buttons=1
        )
    reader.mouse("mouseReleased", 680, 500)
    times = reader.run("return took")
    assert len(times) >= 15
    assert np.median(times) < 33  # about 5 ms on two cores of a server


def one_group(count, colour="#117733"):
    return Colouring(np.zeros(count, int), ["all"], [colour])


def make_many(count):
    rng = np.random.default_rng(0)
    groups = rng.integers(20, size=count)
    colours = [f"#{own:02x}5577" for own in range(0, 240, 12)]
    names = [f"cluster {own + 1}" for own in range(20)]
    texts = [
        f"Text {row}, " + "as short as a sentence of a review is, " * 2 for row in range(count)
    ]
    layouts = {"t-SNE": rng.normal(size=(count, 2)) + 5 * rng.normal(size=(20, 2))[groups]}
    return make_map_page("Many", texts, layouts, {"cluster": Colouring(groups, names, colours)})
