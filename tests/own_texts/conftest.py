import pytest


@pytest.fixture(scope="session")
def save_classifier(tmp_path_factory):
    """Save an encoder as a classifier of three classes; return where."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    def save(folder):
        torch.manual_seed(0)
        names = {0: "bad", 1: "so so", 2: "good"}
        model = AutoModelForSequenceClassification.from_pretrained(folder, id2label=names)
        target = tmp_path_factory.mktemp("classifier")
        model.save_pretrained(target)
        AutoTokenizer.from_pretrained(folder).save_pretrained(target)
        return target

    return save


@pytest.fixture(scope="session")
def bert_classifier(save_classifier, tiny_bert):
    return save_classifier(tiny_bert)
