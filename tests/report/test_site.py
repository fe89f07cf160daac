import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from sentigeo.errors import UserError
from sentigeo.report.site import (
    build_site,
    fit_into,
    make_article,
    make_thumbnail,
    pick_cover,
    read_opening,
)

LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Page(HTMLParser):
    """What a page loads, what it links to, its pictures, and the places it can be linked at."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.pictures, self.places = [], [], [], [""]
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in LOADS and attributes.get(LOADS[tag]):
            self.loads.append(attributes[LOADS[tag]])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag == "img":
            self.pictures.append(attributes)
        self.places.append(attributes.get("id"))


@pytest.fixture(scope="module")
def pages(built):
    site = built / "reports/site"
    return {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


@pytest.mark.published
def test_sphinx_has_no_complaints(built):
    assert (built / "build/warnings.txt").read_text() == ""


@pytest.mark.published
def test_every_chapter_and_figure_is_there(built, pages):
    names = {path.stem for path in pages}
    assert names >= {path.stem for path in (built / "reports").glob("*.ipynb")}
    assert names >= {"index", "figures", "search"}
    figures = {f"figures/{path.name}" for path in (built / "figures").glob("*.png")}
    interactive = {f"figures/{path.name}" for path in (built / "figures").glob("*.html")}
    for name in ("figures", "chapters"):
        own = [page for path, page in pages.items() if (path.stem == name) == (name == "figures")]
        assert {load for page in own for load in page.loads} >= figures
        assert {link for page in own for link in page.links} >= interactive


@pytest.mark.published
def test_the_index_page_says_it_all(built, pages):
    index = built / "reports/site/index.html"
    text = index.read_text("utf-8")
    results = json.loads((built / "reports/results.json").read_text("utf-8"))
    chapters = {f"{name}.html" for name in results["seconds"]}
    assert {link.partition("#")[0] for link in pages[index].links} >= chapters | {"numbers.html"}
    for claim in results["claims"]:
        assert f'#{claim["id"]}">' in text
    assert "Do the 8 contrastive samples help?" in text
    for model in ("lexicon (VADER)", "fine-tuned with 8 samples", "positive control"):
        assert f'<th scope="row">{model}</th>' in text
    for fact in (results["encoder"]["sha256"], results["data"]["sha256"], results["profile"]):
        assert fact in text
    assert f"together {sum(results['seconds'].values()):,.0f} on" in text
    assert 'src="figures/04_maps_classes.png"' in text


@pytest.mark.published
def test_chapters_read_like_articles(built):
    for path in (built / "reports").glob("*.ipynb"):
        page = (built / "reports/site" / f"{path.stem}.html").read_text("utf-8")
        assert "Show code" in page
        boxes = page.count('class="scroll"') + page.count('class="table-wrapper')
        assert boxes == page.count("<table")
        assert 'id="T_t"' not in page
        assert 'class="byline">Chapter' in page
        assert 'class="next-page"' in page


@pytest.mark.published
def test_all_numbers_are_listed(built):
    page = (built / "reports/site/numbers.html").read_text("utf-8")
    results = json.loads((built / "reports/results.json").read_text("utf-8"))
    for name in results["metrics"]:
        assert f"<code>{name}</code>" in page


@pytest.mark.published
def test_no_page_loads_anything_from_elsewhere(built, pages):
    for path, page in pages.items():
        assert [load for load in page.loads if urlsplit(load).netloc] == [], path.name
    for path in (built / "reports/site").rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text("utf-8")), path


@pytest.mark.published
def test_every_link_resolves(pages):
    for path, page in pages.items():
        for link in page.links + page.loads:
            target = urlsplit(link)
            if target.scheme:
                continue
            other = (path.parent / unquote(target.path)).resolve() if target.path else path
            assert other.is_file(), (path.name, link)
            if target.fragment and other in pages:
                assert target.fragment in pages[other].places, (path.name, link)


@pytest.mark.published
def test_every_picture_says_what_it_shows(pages):
    for path, page in pages.items():
        for picture in page.pictures:
            assert picture.get("alt", "").count(" ") > 2, (path.name, picture)
            assert {"width", "height"} <= picture.keys(), (path.name, picture)


@pytest.mark.published
def test_search_finds_the_pages(built):
    index = (built / "reports/site/searchindex.js").read_text("utf-8")
    assert "01_reviews" in index
    assert "baselin" in index


def test_no_report_no_site(tmp_path):
    with pytest.raises(UserError, match="run 'make report' first"):
        build_site(tmp_path, tmp_path, tmp_path / "build")


def test_thumbnails_are_small_and_keep_their_shape(tmp_path):
    Image.new("RGB", (1120, 700), "#D55E00").save(tmp_path / "x.png")
    make_thumbnail(tmp_path / "x.png", tmp_path / "small" / "x.png")
    with Image.open(tmp_path / "small" / "x.png") as small:
        assert small.size == (480, 300)
        assert small.convert("RGB").getpixel((9, 9)) == pytest.approx((213, 94, 0), abs=4)
    assert fit_into((480, 300), (1000, 3000)) == (100, 300)
    assert fit_into((480, 300), (20, 10)) == (20, 10)


def test_the_cover_of_a_chapter():
    assert pick_cover(["04_maps_variance.png", "04_maps_classes.png"]) == "04_maps_classes.png"
    assert pick_cover(["13_new_first.png", "13_new_second.png"]) == "13_new_first.png"
    assert pick_cover([]) is None


OPENING = "# Is it so?\n\nThe source says it is. This *chapter* asks.\nIt takes a minute."


def show(metadata=None, **data):
    held = {name.replace("_", "/"): own for name, own in data.items()}
    return new_output("display_data", held, metadata=metadata or {})


def make(*cells):
    notebook = new_notebook(cells=[new_markdown_cell(OPENING), *cells])
    make_article(notebook, {"01_x_first.png": (300, 200)}, '<p class="byline">Chapter 1</p>')
    return notebook.cells


def test_the_opening_is_a_title_and_a_sentence():
    notebook = new_notebook(cells=[new_markdown_cell(OPENING)])
    assert read_opening(notebook) == ("Is it so?", "The source says it is.")
    notebook.cells[0].source = "# *Bold* words\n\nWith `code` and *stress*, e.g. this."
    assert read_opening(notebook)[1] == "With code and stress, e.g. this."
    assert make()[0].source.split("\n\n")[:2] == ["# Is it so?", '<p class="byline">Chapter 1</p>']


def test_code_that_shows_nothing_is_folded_with_what_follows():
    cells = make(
        new_code_cell("a = 1", metadata={"tags": ["parameters"]}),
        new_code_cell("# Parameters\na = 2", metadata={"tags": ["injected-parameters"]}),
        new_code_cell("chapter = open_chapter()", outputs=[show(text_markdown="Profile")]),
        new_code_cell("b = 1"),
        new_markdown_cell("Text"),
        new_code_cell("c = 1", outputs=[show(text_markdown="c")]),
    )
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "code", "markdown", "code"]
    assert cells[1].source == "a = 1\n\n# Parameters\na = 2\n\nchapter = open_chapter()"
    assert cells[1].metadata["tags"] == ["hide-input", "provenance"]
    assert cells[4].metadata["tags"] == ["hide-input"]


def test_figures_stand_with_their_captions_and_sizes():
    about = {"image/png": {"alt": 'Of "x" < y.', "file": "01_x_first.png"}}
    caption = show({"caption_of": "01_x_first.png"}, text_html="<p><em>Of</em></p>")
    cell = make(new_code_cell("draw()", outputs=[show(about, image_png="aaaa"), caption]))[1]
    assert [output.data["text/html"] for output in cell.outputs] == [
        '<figure class="picture"><a href="figures/01_x_first.png">'
        '<img src="figures/01_x_first.png" alt="Of &quot;x&quot; &lt; y." width="300" height="200" '
        'loading="lazy"></a><figcaption>Of &quot;x&quot; &lt; y.</figcaption></figure>'
    ]


def test_links_lead_to_the_sites_pages():
    link = '<a href="../figures/05_x.html">Map</a> <a href="02_finetune.ipynb#C1">two</a>'
    cells = make(new_code_cell("show()", outputs=[show(text_html=link)]), new_markdown_cell(link))
    assert cells[1].outputs[0].data["text/html"] == (
        '<a href="figures/05_x.html">Map</a> <a href="02_finetune.html#C1">two</a>'
    )
    assert 'href="figures/05_x.html"' in cells[2].source
