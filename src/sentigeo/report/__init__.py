"""The report: notebooks executed, published as results, figures and a site, and compared."""

import sys

# jsonschema (nbformat needs it) would spend seconds of every process on a grammar it never uses.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
