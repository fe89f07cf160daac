import pytest

from sentigeo.encoder import load_encoder


@pytest.fixture(scope="session")
def packaged():
    return load_encoder("packaged")


@pytest.fixture(scope="session")
def tiny(tiny_bert):
    return load_encoder(str(tiny_bert))
