"""Each section of the page on differences prints what it shows."""

from contract import needs_keras_of_the_pages
from page_code import ROOT, SHOWN, run_shown
import pytest

BEFORE, *SECTIONS = (
    (ROOT / "docs" / "differences.md").read_text("utf-8").split("\n## ")
)


@pytest.mark.every_backend
@needs_keras_of_the_pages
@pytest.mark.parametrize(
    "section", SECTIONS, ids=lambda section: section.partition("\n")[0]
)
def test_a_section_prints_what_it_shows(section, capsys):
    (setup,) = SHOWN.findall(BEFORE)
    code, output = SHOWN.findall(section)
    if "import torch" in code[1]:
        pytest.importorskip("torch")
    run_shown([setup, code, output], {}, capsys)
