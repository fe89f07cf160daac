import json

from sentigeo.bench import run_bench
from sentigeo.profile import load_profile


def test_bench_writes_its_ratios(tiny_bert, tmp_path):
    profile = load_profile("quick", model=str(tiny_bert), max_length=32, draw_per_label=20)
    ratios = run_bench(profile, tmp_path / "bench.json", count=16)
    assert json.loads((tmp_path / "bench.json").read_text()) == ratios
    names = ("last_layer_speedup", "top2_speedup", "all_layers_speedup", "trunk_in_plain_epochs")
    assert set(ratios) == {f"finetune.{name}" for name in names}
    assert all(ratio > 0 for ratio in ratios.values())
