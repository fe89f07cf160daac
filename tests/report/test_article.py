import base64
from io import BytesIO

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from sentigeo.report.article import (
    Picture,
    find_claims,
    frame_table,
    list_pictures,
    make_article,
    read_opening,
)

OPENING = "# Is it so?\n\nThe source says it is. This *chapter* asks.\nIt takes a minute."
TABLE = """<style type="text/css">
</style>
<table id="T_t">
  <caption>Scores &amp; names.</caption>
  <thead><tr>
      <th class="col_heading level0 col0" >name</th>
      <th class="col_heading level0 col1" >score</th>
      <th class="col_heading level0 col2" >part</th>
  </tr></thead>
  <tbody>
    <tr><td class="data row0 col0" >one &lt;b&gt;</td><td class="data row0 col1" >-0.5</td>
        <td class="data row0 col2" >12.5%</td></tr>
    <tr><td class="data row1 col0" >2</td><td class="data row1 col1" >1,200</td>
        <td class="data row1 col2" >-</td></tr>
  </tbody>
</table>"""


def draw(width, height):
    file = BytesIO()
    Image.new("RGB", (width, height), "white").save(file, "PNG")
    return file.getvalue()


def show(**data):
    return new_output("display_data", {name.replace("_", "/"): own for name, own in data.items()})


def show_picture(held, caption):
    picture = show(image_png=base64.b64encode(held).decode())
    picture.metadata["image/png"] = {"alt": caption}
    return [picture, show(text_markdown=f"*{caption}*")]


def make(*cells, pictures=None):
    notebook = new_notebook(cells=[new_markdown_cell(OPENING), *cells])
    make_article(notebook, pictures or {}, '<p class="byline">Chapter 1</p>', ["02_finetune"])
    return notebook.cells


def test_the_opening_is_a_title_and_a_sentence():
    notebook = new_notebook(cells=[new_markdown_cell(OPENING)])
    assert read_opening(notebook) == ("Is it so?", "The source says it is.")
    notebook.cells[0].source = "# *Bold* words\n\nWith `code` and *stress*, e.g. this."
    assert read_opening(notebook)[1] == "With code and stress, e.g. this."


def test_the_byline_stands_below_the_title():
    assert make()[0].source.split("\n\n")[:2] == [
        "# Is it so?",
        '<p class="byline">Chapter 1</p>',
    ]


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


def test_figures_stand_with_their_captions_and_sizes(tmp_path):
    first, second = draw(300, 200), draw(100, 50)
    (tmp_path / "01_x_first.png").write_bytes(first)
    (tmp_path / "01_x_second.png").write_bytes(second)
    pictures = dict(list_pictures(tmp_path))
    assert pictures[first] == Picture("01_x_first.png", 300, 200)
    outputs = [*show_picture(second, 'Of "x" < y.'), *show_picture(first, "The first.")]
    cell = make(new_code_cell("draw()", outputs=outputs), pictures=pictures)[1]
    assert len(cell.outputs) == 2
    assert cell.outputs[0].data["text/html"] == (
        '<figure class="picture"><a href="figures/01_x_second.png">'
        '<img src="figures/01_x_second.png" alt="Of &quot;x&quot; &lt; y." width="100" height="50" '
        'loading="lazy"></a><figcaption>Of &quot;x&quot; &lt; y.</figcaption></figure>'
    )
    assert 'src="figures/01_x_first.png"' in cell.outputs[1].data["text/html"]


def test_two_figures_may_look_the_same(tmp_path):
    for name in ("01_x_a.png", "02_x_b.png"):
        (tmp_path / name).write_bytes(draw(10, 10))
    assert [own.file for _, own in list_pictures(tmp_path)] == ["01_x_a.png", "02_x_b.png"]


def test_a_picture_that_is_no_figure_is_carried_along():
    cell = make(new_code_cell("show()", outputs=show_picture(draw(30, 20), "Here it is.")))[1]
    assert len(cell.outputs) == 1
    page = cell.outputs[0].data["text/html"]
    assert 'src="data:image/png;base64,' in page
    assert 'width="30" height="20"' in page
    assert "<a " not in page


def test_sentences_that_only_look_like_captions_stay():
    outputs = [show(text_markdown="*Not a caption.*")]
    assert make(new_code_cell("say()", outputs=outputs))[1].outputs == outputs


def test_tables_have_a_box_and_columns_of_numbers_are_marked():
    framed = frame_table(TABLE)
    assert framed.startswith('<figure class="table"><figcaption>Scores &amp; names.</figcaption>')
    assert 'aria-label="Scores &amp; names." tabindex="0"' in framed
    assert "<style" not in framed
    assert "<caption>" not in framed
    assert "T_t" not in framed
    assert "<th>name</th>" in framed
    assert '<th class="number">score</th>' in framed
    assert "<td>one &lt;b&gt;</td>" in framed
    assert "<td>2</td>" in framed  # a column with words in it is one of words
    assert '<td class="number">12.5%</td>' in framed


@pytest.mark.parametrize("text", ["0.5 [0.4, 0.6]", "2.4e-07", "3 s", "+0.01", "1,234", "nan", ""])
def test_what_a_number_looks_like(text):
    assert f'<td class="number">{text}</td>' in frame_table(f'<td class="data col0" >{text}</td>')


@pytest.mark.parametrize("text", ["v2", "3 of 4", "2024-01-01", "1."])
def test_what_does_not_look_like_a_number(text):
    assert f"<td>{text}</td>" in frame_table(f'<td class="data col0" >{text}</td>')


def test_claims_can_be_linked_at_and_links_lead_to_the_copies():
    block = '<div class="claim"><p><b class="claim-id">C1.</b> It is.</p></div>'
    link = '<p><a href="../figures/05_x.html">Map</a></p>'
    cells = make(
        new_code_cell("verdict()", outputs=[show(text_html=block), show(text_html=link)]),
        new_markdown_cell('<a href="../figures/05_x.html">Map</a>'),
    )
    assert cells[1].outputs[0].data["text/html"].startswith('<div class="claim" id="C1"><p>')
    assert 'href="figures/05_x.html"' in cells[1].outputs[1].data["text/html"]
    assert cells[2].source == '<a href="figures/05_x.html">Map</a>'
    assert find_claims(new_notebook(cells=cells)) == ["C1"]


def test_links_to_notebooks_lead_to_their_pages_if_there_are_any():
    table = (
        '<table class="ledger"><tr><td><a href="02_finetune.ipynb">two</a></td>'
        '<td><a href="10_attention.ipynb">ten</a></td></tr></table>'
    )
    cell = make(new_code_cell("ledger()", outputs=[show(text_html=table)]))[1]
    assert cell.outputs[0].data["text/html"] == (
        '<figure class="table"><div class="scroll" role="region" aria-label="Table" tabindex="0">'
        '<table class="ledger"><tr><td><a href="02_finetune.html">two</a></td><td>ten</td></tr>'
        "</table></div></figure>"
    )
