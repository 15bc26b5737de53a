"""The real corpus, where it is here."""

from pathlib import Path
import zipfile

import pytest

TATOEBA = Path(__file__).parents[3] / "shared" / "data" / "fra-eng.zip"


@pytest.fixture(scope="session")
def tatoeba(tmp_path_factory):
    """The path of `fra.txt`, English and French of Tatoeba."""
    if not TATOEBA.exists():
        pytest.skip("the real corpus is not here")
    with zipfile.ZipFile(TATOEBA) as archive:
        return archive.extract("fra.txt", tmp_path_factory.mktemp("tatoeba"))
