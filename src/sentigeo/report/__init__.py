"""The report: notebooks executed, published as results, figures and a site, and compared."""

import sys

# jsonschema, which nbformat needs, would spend seconds on a grammar of addresses that none asks for.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
