"""Run the notebook for your own texts into a folder: all of its files or none."""

import csv
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sentigeo.encoder.encoder import find_encoder
from sentigeo.errors import UserError
from sentigeo.own_texts.read import read_own_texts
from sentigeo.own_texts.study import read_k
from sentigeo.paths import NOTEBOOKS, ROOT, write_text
from sentigeo.report.execute import Process, RunProgress, check_parameters, run_notebook
from sentigeo.report.notebook import STAGE_VARIABLE
from sentigeo.report.page import Page

SOURCE = NOTEBOOKS / "90_your_texts.ipynb"
NOTEBOOK, SUMMARY = "your_texts.ipynb", "summary.md"
UNFINISHED = ".unfinished"  # what a run writes to until it is complete
FILES = {
    SUMMARY: "what was found, in short",
    NOTEBOOK: "the executed notebook, with every step",
    "map.html": "the interactive map: point at a text to read it, search, colour",
    "rows.csv": "one row per text: cluster, distance from its centre, place on the maps",
    "embeddings.npy": "the vectors, in the order of rows.csv",
    "clusters.csv": "the clusters: how many texts, which keywords",
    "keywords.csv": "the words that set each cluster apart, with their scores",
    "representatives.csv": "the texts nearest to the middle of each cluster",
    "choice_of_k.csv": "how well each number of clusters is found again",
    "choice_of_k.png": "the same as a figure",
    "clustering_pca.png": "the clusters on a map by principal components",
    "clustering_tsne.png": "the clusters on a map by t-SNE",
    "keywords.png": "the keywords as a figure",
    "confusion.png": "clusters against labels",
}


class OwnFolder(Page):
    """Where a notebook puts what it found; sentences are gathered into `summary.md`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._summary: list[str] = []
        self._made = {NOTEBOOK, SUMMARY}

    def conclude(self, text: str) -> None:
        """Show a paragraph and put it into the summary."""
        self.say(text)
        self.note(text)

    def note(self, text: str) -> None:
        """Put a paragraph into the summary."""
        self._summary.append(text)

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """Save a figure and show it."""
        with self._writing(name) as path:
            self.picture(figure, path, caption)

    def frame(self, frame: pd.DataFrame, name: str) -> None:
        """Save a table as CSV."""
        with self._writing(name) as path:
            frame.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC)  # for a lone "\r" too

    def array(self, array: np.ndarray, name: str) -> None:
        """Save an array."""
        with self._writing(name) as path:
            np.save(path, array, allow_pickle=False)

    def page(self, text: str, name: str, caption: str) -> None:
        """Save an interactive page and link to it."""
        with self._writing(name) as path:
            self.link(text, path, name, caption)

    def finish(self, title: str) -> None:
        """Write the summary: all paragraphs in their order, and what each file holds."""
        files = "\n".join(f"- `{name}`: {FILES[name]}" for name in FILES if name in self._made)
        text = "\n\n".join([f"# {title}", *self._summary, "## Files", files])
        with self._writing(SUMMARY) as path:
            write_text(path, f"{text}\n")
        self.say(f"Files:\n\n{files}")

    @contextmanager
    def _writing(self, name: str) -> Iterator[Path]:
        if name not in FILES:
            raise ValueError(f"{name} is not among the files of a run")
        try:
            yield self.folder / name
            self._made.add(name)
        except OSError as error:
            raise UserError(f"Cannot write {name} ({error}): is the disk full?") from None


def open_own_folder(by_hand: str) -> OwnFolder:
    """Return the folder of a running `make texts`, or that of a notebook that runs by hand."""
    folder = Path(os.environ.get(STAGE_VARIABLE, ROOT / Path(by_hand).expanduser()))
    folder.mkdir(parents=True, exist_ok=True)
    return OwnFolder(folder)


@contextmanager
def fill_folder(out: Path) -> Iterator[Path]:
    """Provide an empty folder; on success its files are moved to `out`, otherwise removed.

    Files of an earlier run, even of a killed one, are replaced or removed; others stay.
    """
    existed, stage = out.is_dir(), out / UNFINISHED
    with _claim(out):
        try:
            shutil.rmtree(stage, ignore_errors=True)
            stage.mkdir()
            yield stage
            for name in FILES:
                if (stage / name).is_file():
                    (stage / name).replace(out / name)
                else:
                    (out / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
            if not existed:
                with suppress(OSError):  # it is not empty: the run was complete
                    out.rmdir()


@contextmanager
def _claim(out: Path) -> Iterator[None]:
    """Make a folder if needed and lock it against other runs; refuse one with other files."""
    out.mkdir(parents=True, exist_ok=True)
    ours = out / NOTEBOOK, out / UNFINISHED
    if any(out.iterdir()) and not any(path.exists() for path in ours):
        raise UserError(f"{out} holds other files: give a new or an empty folder.")
    folder = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (out.is_dir() and os.path.samestat(os.fstat(folder), out.stat())):
            raise BlockingIOError  # another run has just removed it
    except BlockingIOError:
        os.close(folder)
        raise UserError(f"Another run is writing to {out}.") from None
    try:
        yield
    finally:
        os.close(folder)


def run_own_texts(out: Path, parameters: dict[str, Any]) -> None:
    """Execute `90_your_texts` into a folder, after a check of its parameters."""
    check_parameters(SOURCE, parameters)
    fields = (parameters[name] for name in ("source", "text_field", "label_field"))
    texts = read_own_texts(*fields)
    read_k(parameters["k"], texts)
    find_encoder(parameters["model"])
    print(f"{len(texts.texts):,} texts. {' '.join(texts.notes)}", flush=True)
    try:
        with fill_folder(out) as stage, RunProgress(1, stage / "notes") as progress:
            paths = stage / NOTEBOOK, parameters, stage / "notes", {STAGE_VARIABLE: str(stage)}
            run_notebook(Process(SOURCE, *paths), progress)
    except UserError as error:
        raise UserError(str(error).removeprefix(f"{SOURCE.name}: ")) from None
    except OSError as error:
        raise UserError(f"Cannot write to {out}: {error.strerror or error}.") from None
