"""The list of faults fits the code and the tests as they are today."""

from faults.plant import ROOT, files_of_tests, planted, read_faults
import pytest

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.sentence)
def test_a_fault_can_be_planted(fault):
    whole = (ROOT / fault.file).read_text(encoding="utf-8")
    text = planted(fault, whole)
    assert text != whole
    if fault.file.endswith(".py"):
        compile(text, fault.file, "exec")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.sentence)
def test_the_tests_of_a_fault_are_there(fault):
    files = files_of_tests(fault)
    assert files
    for test in fault.tests:
        path, *names = test.split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(f"def {name.split('[')[0]}(" in text for name in names)


def test_each_fault_has_a_sentence_of_its_own():
    sentences = [fault.sentence for fault in FAULTS]
    assert len({*sentences}) == len(sentences)
    assert len(sentences) >= 120


def test_a_fault_that_fits_twice_or_nowhere_is_refused():
    fault = FAULTS[0]._replace(old="one")
    for text, number in (("one and one", 2), ("two", 0)):
        with pytest.raises(ValueError, match=f"Received: {number} times"):
            planted(fault, text)
