"""The endpoints of the headline experiment, fixed before the run that they judge."""

from typing import Any

import yaml

from sentigeo.paths import DATA

ENDPOINTS = DATA / "endpoints.yaml"


def load_endpoints() -> dict[str, Any]:
    """Return the `primary` endpoint, the `smallest_effects` of interest and the `level`."""
    found: dict[str, Any] = yaml.safe_load(ENDPOINTS.read_text("utf-8"))
    return found
