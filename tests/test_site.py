import re
import shutil
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from sentigeo.errors import UserError
from sentigeo.paths import run_paths
from sentigeo.site import build_site, format_interval, format_number

PUBLISHED = run_paths("laptop")
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Page(HTMLParser):
    """What a page loads, what it links to, and its pictures."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.links, self.pictures = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag in LOADS and attributes.get(LOADS[tag]):
            self.loads.append(attributes[LOADS[tag]])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag == "img":
            self.pictures.append(attributes)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site of the committed report, built anew."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PUBLISHED.reports, folder / "reports", ignore=shutil.ignore_patterns("site"))
    shutil.copytree(PUBLISHED.figures, folder / "figures")
    build_site(folder / "reports", folder / "figures", folder / "build")
    return folder


@pytest.fixture(scope="module")
def pages(built):
    site = built / "reports/site"
    return {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def test_sphinx_has_no_complaints(built):
    assert (built / "build/warnings.txt").read_text() == ""


def test_every_chapter_and_figure_is_there(built, pages):
    names = {path.stem for path in pages}
    assert names >= {path.stem for path in (built / "reports").glob("*.ipynb")}
    assert names >= {"index", "figures", "search"}
    shown = {path.name for path in (built / "reports/site/_images").iterdir()}
    assert shown >= {path.name for path in (built / "figures").glob("*.png")}
    interactive = {path.name for path in (built / "figures").glob("*.html")}
    assert {path.name for path in (built / "reports/site/figures").iterdir()} == interactive
    linked = {link for path, page in pages.items() if path.stem != "figures" for link in page.links}
    assert linked >= {f"figures/{name}" for name in interactive}


def test_no_page_loads_anything_from_elsewhere(built, pages):
    for path, page in pages.items():
        assert [load for load in page.loads if urlsplit(load).netloc] == [], path.name
    for path in (built / "reports/site").rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text("utf-8")), path


def test_every_link_resolves(pages):
    for path, page in pages.items():
        for link in page.links + page.loads:
            target = urlsplit(link)
            if not target.scheme and target.path:
                assert (path.parent / unquote(target.path)).is_file(), (path.name, link)


def test_every_picture_says_what_it_shows(pages):
    for path, page in pages.items():
        for picture in page.pictures:
            assert picture.get("alt", "").count(" ") > 2, (path.name, picture)


def test_search_finds_the_pages(built):
    index = (built / "reports/site/searchindex.js").read_text("utf-8")
    assert "01_reviews" in index
    assert "baselin" in index


def test_no_report_no_site(tmp_path):
    with pytest.raises(UserError, match="run 'make report' with it first"):
        build_site(tmp_path, tmp_path, tmp_path / "build")


def test_numbers():
    assert format_number(0.87349) == "0.873"
    assert format_number(1234) == "1,234"
    assert format_number(None) == "-"
    assert format_interval({"low": 0.1, "high": 0.25}) == "[0.100, 0.250]"
    assert format_interval({"low": None, "high": None}) == "-"
