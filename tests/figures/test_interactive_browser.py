import json

import numpy as np
import pytest
from map_reader import Reader

from sentigeo.figures.interactive import make_map_page
from sentigeo.figures.style import Colouring

pytestmark = pytest.mark.browser
# A cross: a middle, then right, left, up and down of it, and one more far to the right.
CROSS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [2, 0.1]])
LAYOUTS = {"before": CROSS, "after": CROSS[::-1] * [3, 1]}
TEXTS = ["Middle: a fine film", "Right: a dull FILM", "Left: a.b (c)", "Up: axb (c)",
         "Down: [\\^$*+?{}|/-] É", "Far: " + 500 * "x"]  # fmt: skip
ROWS = np.array([2, 5, 7, 11, 13, 70_000])
LABEL = Colouring(np.array([0, 1, 0, 1, 0, 1]), ["negative", "positive"], ["#D55E00", "#0072B2"])
CLUSTER = Colouring(np.array([0, 0, 0, 1, 1, 2]), ["one", "two", "three"],
                    ["#117733", "#AA4499", "#332288"])  # fmt: skip
ESCAPE, ENTER, RIGHT, DOWN = "\ue00c", "\ue007", "\ue014", "\ue015"  # keys, as WebDriver has them
TRAVEL = """
  const waiting = [], path = [], ask = window.requestAnimationFrame;
  window.requestAnimationFrame = draw => waiting.push(draw);
  const select = document.querySelector("#layout");
  select.value = "1";
  select.dispatchEvent(new Event("change"));
  for (let time = 0; time <= 2000; time += 100) {
    for (const draw of waiting.splice(0)) draw(time);
    path.push(sentigeoMap.screenPosition(5)[0]);
  }
  window.requestAnimationFrame = ask;
  return path;
"""


@pytest.fixture
def reader(browser, tmp_path):
    reader = Reader(browser, tmp_path)
    yield reader
    assert browser.get_log("browser") == []  # no page says anything on the console


def make(texts=TEXTS, label=LABEL):
    return make_map_page("Films", texts, LAYOUTS, {"label": label, "cluster": CLUSTER}, ROWS)


def on_white(colour, opacity=0.82):
    shares = bytes.fromhex(colour[1:])
    return pytest.approx([255 + (share - 255) * opacity for share in shares], abs=3)


def texts_of(reader, selector):
    return [item.text for item in reader.all(selector)]


def test_pointing_shows_a_text_and_clicks_keep_it(reader):
    reader.open(make())
    assert not reader.find("#tip").is_displayed()
    reader.point(1)
    assert reader.text("#tip .text") == "Right: a dull FILM"
    assert reader.text("#tip .facts").split("\n") == ["Row 5", "positive", "one"]
    reader.hears("Row 5, positive, one: Right: a dull FILM")
    reader.point(5)
    assert reader.text("#tip .facts").split("\n")[0] == "Row 70,000"
    assert reader.text("#tip .text + .note") == "The first 400 of 505 characters"
    x, y = reader.place(1)
    reader.mouse("mouseMoved", x + 40, y + 40)
    assert not reader.find("#tip").is_displayed()
    for row in (3, 1, 3):
        reader.point(row, click=True)
    assert texts_of(reader, "#kept .text") == [TEXTS[3], TEXTS[1]]
    assert reader.text("#keeping") == "Kept texts (2)"
    reader.click("#kept [aria-label='Remove row 11']")
    assert texts_of(reader, "#kept .text") == [TEXTS[1]]
    reader.click("#kept [aria-label='Show row 5 on the map']")
    assert reader.text("#tip .text") == TEXTS[1]
    reader.click("#empty")
    assert reader.all("#kept li") == []
    assert reader.find("#none").is_displayed()


def test_search_counts_marks_and_dims_and_the_legend_hides(reader):
    reader.open(make())
    for sought, found in {"a.b (": 1, "[\\^$*+?{}|/-]": 1, "é": 1, "zz": 0}.items():
        reader.find("#search").clear()
        reader.press("#search", sought)  # signs are taken as they are
        assert reader.text("#found").split()[0] == str(found)
    reader.find("#search").clear()
    reader.press("#search", "film")
    assert reader.text("#found") == "2 matches"
    assert reader.colour(0) == on_white("#D55E00", 0.95)
    assert reader.colour(2) == on_white("#D55E00", 0.13)
    assert texts_of(reader, "#legend .count") == ["1 of 3", "1 of 3"]
    reader.press("#search", ENTER)
    assert reader.text("#found") == "1 of 2 matches"
    reader.press("#search", ENTER)
    assert reader.text("#tip .text mark") == "FILM"
    reader.press("#search", ENTER)  # and round again
    assert reader.text("#tip .text") == TEXTS[0]
    reader.press("#search", ESCAPE + ESCAPE)
    assert reader.text("#found") == ""
    assert reader.colour(2) == on_white("#D55E00")
    reader.click("#legend li:nth-child(2) button")
    assert reader.find("#legend li:nth-child(2) button").get_attribute("aria-pressed") == "false"
    assert reader.colour(1) == [255, 255, 255]
    reader.point(1)
    assert not reader.find("#tip").is_displayed()
    reader.press("#search", "film")
    assert reader.text("#found") == "1 match, 1 hidden"
    reader.click("#all")
    assert reader.text("#found") == "2 matches"


def test_colours_change_and_points_travel_to_another_layout(reader):
    reader.open(make())
    assert reader.colour(1) == on_white("#0072B2")
    reader.choose("#colouring", "cluster")
    assert reader.colour(1) == on_white("#117733")
    assert texts_of(reader, "#legend .name") == ["one", "two", "three"]
    assert texts_of(reader, "#legend .count") == ["3", "2", "1"]
    reader.choose("#layout", "after")
    assert reader.place(5)[0] < reader.place(0)[0]
    reader.choose("#layout", "before")
    assert reader.place(5)[0] > reader.place(0)[0]
    reader.tell("Emulation.setEmulatedMedia", features=[])  # a reader who likes motion
    reader.wait()
    path = reader.run(TRAVEL)
    assert len(set(path)) > 3
    assert path == sorted(path, reverse=True)
    assert reader.place(5)[0] < reader.place(0)[0]
    reader.point(5)
    assert reader.text("#tip .facts").split("\n") == ["Row 70,000", "positive", "three"]


def test_keys_wheel_and_fingers_move_over_the_map(reader):
    reader.open(make())
    reader.press("body", "/")
    reader.press("#search", DOWN)
    assert reader.browser.switch_to.active_element.get_attribute("id") == "points"
    reader.point(0)
    for keys, text in {RIGHT: TEXTS[1], RIGHT + DOWN: "Far"}.items():
        reader.press("canvas", keys)
        assert reader.text("#tip .text").startswith(text)
    reader.press("canvas", ENTER)
    assert len(reader.all("#kept li")) == 1

    def apart():
        return reader.place(1)[0] - reader.place(2)[0]

    before = apart()
    reader.press("canvas", "+")
    assert apart() == pytest.approx(1.5 * before)
    reader.press("canvas", "0")
    assert apart() == pytest.approx(before)
    reader.press("canvas", ESCAPE)
    assert not reader.find("#tip").is_displayed()
    x, y = reader.place(3)
    reader.tell("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-500)
    reader.wait()
    assert reader.place(3) == pytest.approx([x, y], abs=1)
    assert apart() > 1.5 * before
    reader.mouse("mousePressed", x, y)
    reader.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x - 60, y=y + 30, buttons=1)
    reader.mouse("mouseReleased", x - 60, y + 30)
    reader.wait()
    assert reader.place(3) == pytest.approx([x - 60, y + 30], abs=1)
    reader.press("canvas", "0")
    reader.touch("touchStart", (300, 400), (400, 400))
    for step in range(1, 6):
        reader.touch("touchMove", (300 - 10 * step, 400), (400 + 10 * step, 400))
    reader.touch("touchEnd")
    reader.wait()
    assert apart() == pytest.approx(2 * before)
    assert len(reader.all("#kept li")) == 1  # neither a drag nor two fingers are a click


def test_no_text_can_do_anything(reader):
    attack = "<script>window.hacked = 1; alert(1)</script><img src=x onerror='hacked = 1'>\"'`${1}"
    arabic, backwards = "فيلم جميل <b>", "\u202egnorw si siht\u2066"
    names = ["</script><script>hacked = 1</script>", "\u202ebackwards"]
    label = Colouring(LABEL.groups, names, LABEL.colours)
    address = "http://example.org/a.png</textarea>--><!--"
    texts = [attack, arabic, backwards, address, "\ud800 half", "\u2028"]
    reader.open(make(texts, label))
    for row in range(5):
        reader.point(row, click=True)
    kept = [item.get_property("textContent") for item in reader.all("#kept .text")]
    assert kept == [*texts[:4], "\ufffd half"]
    assert reader.text("#legend .name") == names[0]
    assert reader.run("return window.hacked === undefined")
    assert reader.all("img, b, textarea") == []
    assert reader.find("#kept li:nth-child(2) .text").value_of_css_property("direction") == "rtl"
    for selector in ("body", "#kept li:nth-child(2) .facts", "#tip"):
        assert reader.find(selector).value_of_css_property("direction") == "ltr"
    for selector in ("#kept li:nth-child(3) .text", "#kept bdi", "#legend .name"):
        assert reader.find(selector).value_of_css_property("unicode-bidi") == "isolate"
    messages = [json.loads(e["message"])["message"] for e in reader.browser.get_log("performance")]
    asked = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert [one["request"]["url"] for one in asked] == [reader.file.as_uri()]


def test_a_phone_needs_no_sideways_scrolling_and_taps_keep(reader):
    page = make_map_page("W" * 80, ["w" * 300, *TEXTS[1:]], LAYOUTS, {"g" * 90: LABEL})
    reader.open(page, 360, 740, mobile=True, deviceScaleFactor=2)
    reader.tell("Emulation.setTouchEmulationEnabled", enabled=True)
    reader.tap(0)
    assert reader.text("#tip .facts").split("\n")[0] == "Row 1"  # counted, where no number is given
    assert reader.text("#tip .note") == "Tap again to keep"
    assert reader.all("#kept li") == []
    reader.tap(0)
    assert len(reader.all("#kept li")) == 1
    reader.tell("Emulation.setTouchEmulationEnabled", enabled=False)
    assert reader.run("return document.documentElement.scrollWidth") == 360
    tip = reader.find("#tip").rect
    assert tip["x"] >= 0
    assert tip["x"] + tip["width"] <= 360


def test_one_layout_leaves_nothing_to_choose_and_the_dark_stays_legible(reader):
    everything = Colouring(np.zeros(6, int), ["all"], ["#000000"])
    reader.open(make_map_page("Dark", TEXTS, {"x": CROSS}, {"all": everything}))
    assert not reader.find("#layout").is_displayed()
    assert not reader.find("#colouring").is_displayed()
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    reader.tell("Emulation.setEmulatedMedia", features=features)
    reader.wait()
    ground = reader.run("return Array.from(canvas.getContext('2d').getImageData(3, 3, 1, 1).data)")
    assert max(ground[:3]) < 40
    assert min(reader.colour(0)) > 70
    reader.point(0)
    assert reader.text("#tip .text") == TEXTS[0]
