"""The built site as a reader's browser sees it."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from map_reader import Reader
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = [pytest.mark.browser, pytest.mark.published]
DESKTOP, PHONE = (1200, 900), (375, 740)
TAB, ENTER = "\ue004", "\ue007"  # keys, as WebDriver has them
LOAD_ALL = """
  const done = arguments[0], images = Array.from(document.images);
  images.forEach(image => { image.loading = "eager"; });
  const loaded = images.map(image => image.complete || new Promise(go => {
    image.addEventListener("load", go);
    image.addEventListener("error", go);
  }));
  Promise.all(loaded).then(() => done(images.map(
    image => ({source: image.currentSrc, wide: image.naturalWidth, alt: image.alt})
  )));
"""


class Visitor:
    """Someone who goes through the site."""

    def __init__(self, browser, site):
        self.browser, self.site = browser, site
        self.run = browser.execute_script

    def tell(self, command, **values):
        return self.browser.execute_cdp_cmd(command, values)

    def prefer(self, size, colours="light"):
        features = [{"name": "prefers-color-scheme", "value": colours}]
        self.tell("Emulation.setEmulatedMedia", features=features)
        self.tell("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                  deviceScaleFactor=1, mobile=size == PHONE)  # fmt: skip

    def open(self, name):
        for log in ("browser", "performance"):
            self.browser.get_log(log)
        self.browser.get((self.site / name).as_uri())

    def asked(self):
        """What was requested since a page was opened; pictures carried by a page are none."""
        entries = self.browser.get_log("performance")
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [own["params"] for own in messages if own["method"] == "Network.requestWillBeSent"]
        urls = [own["request"]["url"] for own in sent]
        return [url for url in urls if not url.startswith("data:")]


@pytest.fixture(scope="module")
def visitor(browser, built):
    return Visitor(browser, built / "reports/site")


@pytest.fixture(scope="module")
def seen(visitor):
    """What happens on every page: at a desk with all pictures loaded, and how wide on a phone."""
    found = {}
    names = sorted(str(p.relative_to(visitor.site)) for p in visitor.site.rglob("*.html"))
    for name in names:
        visitor.prefer(DESKTOP)
        visitor.open(name)
        images = visitor.browser.execute_async_script(LOAD_ALL)
        said, asked = visitor.browser.get_log("browser"), visitor.asked()
        visitor.prefer(PHONE)
        wide = visitor.run("return document.documentElement.scrollWidth")
        found[name] = {"images": images, "said": said, "asked": asked, "wide": wide}
    return found


def test_every_page_loads_and_says_nothing_on_the_console(seen):
    assert {"index.html", "01_reviews.html", "figures.html", "numbers.html"} <= seen.keys()
    assert {name: own["said"] for name, own in seen.items() if own["said"]} == {}


def test_no_page_requests_anything_from_elsewhere(seen, visitor):
    home = visitor.site.as_uri()
    for name, own in seen.items():
        assert own["asked"], name
        assert [url for url in own["asked"] if not url.startswith(home)] == [], name


def test_every_picture_is_there_and_says_what_it_shows(seen):
    assert sum(len(own["images"]) for own in seen.values()) > 100
    for name, own in seen.items():
        assert [image for image in own["images"] if not (image["wide"] and image["alt"])] == [], (
            name
        )


def test_no_page_scrolls_sideways_on_a_phone(seen):
    assert {name: own["wide"] for name, own in seen.items() if own["wide"] > PHONE[0]} == {}


def test_the_index_page_is_light(seen):
    files = {Path(unquote(urlsplit(url).path)) for url in seen["index.html"]["asked"]}
    assert len(files) > 15
    assert sum(file.stat().st_size for file in files) < 1_500_000


def test_hovering_over_the_map_shows_a_review(browser, built, tmp_path):
    reader = Reader(browser, tmp_path)
    page = (built / "reports/site/figures/05_clusters_map.html").read_text("utf-8")
    assert len(page.encode()) < 1_000_000
    reader.open(page)
    reader.point(7)
    assert len(reader.text("#tip .text")) > 100
    facts = reader.text("#tip .facts").split("\n")
    assert facts[0].startswith("Row ")
    assert facts[2].startswith("pretrained: cluster ")
    assert facts[3].startswith("fine-tuned: cluster ")
    assert facts[4].startswith("classifier ")
    before = reader.place(7)
    reader.choose("#layout", "t-SNE, fine-tuned")
    assert reader.place(7) != before
    assert [own.text for own in reader.all("#colouring option")] == [
        "label", "cluster, pretrained", "cluster, fine-tuned", "classifier"
    ]  # fmt: skip


def test_search_finds_pages_from_a_disk(visitor):
    visitor.prefer(DESKTOP)
    visitor.browser.get((visitor.site / "search.html").as_uri() + "?q=anisotropy")
    WebDriverWait(visitor.browser, 10).until(
        lambda browser: browser.find_elements("css selector", "#search-results li a")
    )
    links = visitor.browser.find_elements("css selector", "#search-results li a")
    assert any("08_similarity.html" in link.get_attribute("href") for link in links)
    assert visitor.browser.get_log("browser") == []


def brightness(visitor, selector):
    colour = visitor.run(
        "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor", selector
    )
    return sum(float(own) for own in colour[colour.index("(") + 1 : -1].split(",")[:3]) / 3


def test_dark_readers_get_dark_pages_with_figures_on_white(visitor):
    for name in ("index.html", "02_finetune.html", "figures/10_attention_view.html"):
        visitor.prefer(DESKTOP, "light")
        visitor.open(name)
        assert brightness(visitor, "body") > 230, name
        visitor.prefer(DESKTOP, "dark")
        assert brightness(visitor, "body") < 50, name
        if "/" not in name:
            assert brightness(visitor, "figure.picture img") == 255


def test_the_keyboard_is_enough(visitor):
    visitor.prefer(DESKTOP)
    visitor.open("02_finetune.html")
    visitor.browser.find_element("css selector", "body").send_keys(TAB)
    first = visitor.browser.switch_to.active_element
    assert first.get_property("textContent") == "Skip to content"  # it is still sliding in
    first.send_keys(ENTER)
    assert visitor.run("return location.hash") == "#furo-main-content"
    fold = visitor.browser.find_element("css selector", "details.hide")
    assert fold.get_attribute("open") is None
    visitor.run("arguments[0].querySelector('summary').focus()", fold)
    assert visitor.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    visitor.browser.switch_to.active_element.send_keys(ENTER)
    assert fold.get_attribute("open") is not None
    code = visitor.browser.find_element("css selector", "details.hide .cell_input")
    assert "open_chapter" in code.get_property("textContent")
    assert code.size["height"] > 40
    visitor.browser.find_element("css selector", "a.next-page").send_keys(ENTER)
    assert visitor.browser.current_url.endswith("03_embeddings.html")
