"""Run the notebook for a person's own texts, from their file to a folder of results."""

from pathlib import Path
from typing import Any

from sentigeo.encoder.encoder import find_encoder
from sentigeo.errors import UserError
from sentigeo.own_texts.folder import NOTEBOOK, fill_folder
from sentigeo.own_texts.read import read_own_texts
from sentigeo.own_texts.study import read_k
from sentigeo.paths import NOTEBOOKS
from sentigeo.progress import RunProgress
from sentigeo.report.execute import Process, run_notebook
from sentigeo.report.notebook import STAGE_VARIABLE
from sentigeo.report.plan import check_parameters

SOURCE = NOTEBOOKS / "90_your_texts.ipynb"


def run_own_texts(out: Path, parameters: dict[str, Any]) -> None:
    """Execute `90_your_texts` and put what it makes into a folder, all of it or nothing.

    Args:
        out: The folder; it is made if need be.
        parameters: Of the notebook.

    Raises:
        UserError: The texts, the model or the folder cannot be used.
    """
    check_parameters(SOURCE, parameters)
    texts = read_own_texts(
        parameters["source"], parameters["text_field"], parameters["label_field"]
    )  # what is wrong with them is said before a kernel starts
    read_k(parameters["k"], texts)
    find_encoder(parameters["model"])
    print(f"{len(texts.texts):,} texts. {' '.join(texts.notes)}", flush=True)
    try:
        with fill_folder(out) as stage:
            _execute(stage, parameters)
    except UserError as error:
        raise UserError(str(error).removeprefix(f"{SOURCE.name}: ")) from None
    except OSError as error:
        raise UserError(f"Cannot write to {out}: {error.strerror or error}.") from None


def _execute(stage: Path, parameters: dict[str, Any]) -> None:
    """Execute the notebook into a folder and show how far it is."""
    notes, variables = stage / "notes", {STAGE_VARIABLE: str(stage)}
    with RunProgress(1, notes) as progress:
        run_notebook(Process(SOURCE, stage / NOTEBOOK, parameters, notes, variables), progress)
