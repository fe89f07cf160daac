import json
import re

from sentigeo.figures.interactive import fill_page


def test_facts_come_back_and_lone_surrogates_do_not_stop_a_file():
    facts = {
        "texts": ["</script><!--", "\u2028 é 語", "bad \ud83d", "pair \ud83d\ude00", "\x00\r\n"]
    }
    page = fill_page("map.html.jinja", "Half a \udc00 sign", facts)
    assert "Half a \ufffd sign" in page
    found = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert found["texts"] == [*facts["texts"][:2], "bad \ufffd", "pair 😀", "\x00\r\n"]
    assert page.encode("utf-8").decode("utf-8") == page
