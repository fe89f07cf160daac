"""Pages of their own: one file each, complete without a network."""

import json
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sentigeo.paths import SITE_SOURCE


def fill_page(template: str, title: str, facts: dict[str, Any]) -> str:
    """Return a page that carries its data with it.

    Args:
        template: File in the site's folder; it places `title` and, inside a script, `data`.
        title: Title of the page.
        facts: What the page shows; none of it can end the script, and lone surrogates, which no
            file may hold, become replacement characters.
    """
    environment = Environment(
        loader=FileSystemLoader(SITE_SOURCE), undefined=StrictUndefined, autoescape=True
    )
    data = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = environment.get_template(template).render(title=title, data=data)
    return page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
