import json

import numpy as np
import torch
from helpers import write_rows
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import REPEATS, take_turns
from benchmarks.bench import run_bench
from benchmarks.vectors import count_operations
from sentigeo.encoder.encoder import load_encoder
from sentigeo.profile import load_profile

NAMES = {
    "finetune.last_layer_speedup",
    "finetune.top2_speedup",
    "finetune.all_layers_speedup",
    "finetune.trunk_in_plain_epochs",
    "embed.speedup_vs_sentence_transformers",
    "embed.share_of_peak",
    "embed.sentence_transformers_share_of_peak",
    "embed.smallest_cosine",
    "tsne.speedup_vs_sklearn",
    "tsne.seconds_of_one_map",
}


def test_bench_writes_its_ratios(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.REPEATS", 1)
    monkeypatch.setattr("benchmarks.vectors.SQUARE", 64)
    rows = [
        {"text": f"{word} film, number {number}", "label": label}
        for number in range(60)
        for word, label in (("good", "yes"), ("bad", "no"))
    ]
    profile = load_profile(
        "quick", reviews=str(write_rows(tmp_path / "own.json", rows)), model=str(tiny_bert),
        labels={"no": "negative", "yes": "positive"}, max_length=32, draw_per_label=20,
    )  # fmt: skip
    sizes = {"finetune": 8, "embed": 40, "tsne": 100}
    ratios = run_bench(profile, tmp_path / "bench.json", sizes)
    assert json.loads((tmp_path / "bench.json").read_text()) == ratios
    assert set(ratios) == NAMES
    assert all(ratios[name] > 0 for name in NAMES if name.endswith(("speedup", "transformers")))
    assert ratios["embed.smallest_cosine"] >= 0.99999


def test_contestants_take_turns():
    turns = []
    seconds = take_turns({"a": lambda: turns.append("a"), "b": lambda: turns.append("b")}, "test")
    assert turns == ["a", "b"] * REPEATS
    assert set(seconds) == {"a", "b"}


def test_operations_are_those_that_torch_counts(tiny_bert):
    encoder = load_encoder(str(tiny_bert))
    encoder.model.set_attn_implementation("eager")
    ids = torch.randint(1000, 2000, (3, 20))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        encoder.model.encoder(encoder.model.embeddings(ids))
    assert count_operations(np.array([20, 20, 20]), encoder) == counter.get_total_flops()
