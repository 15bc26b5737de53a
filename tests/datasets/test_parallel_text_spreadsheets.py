"""Files of spreadsheets, which put some cells into quotes."""

import re
import warnings

from d2l_attention.datasets.parallel_text import DataError, read_pairs
import pytest

PAIRS = [
    *((f"go {i}", f"va {i}") for i in range(100)),
    ("Yes, I know.", "Oui, je sais."),
    ('She said "no".', "Elle a dit non."),
    ("first\nsecond", "un\ndeux"),
    ("three\nlines\n", '"Tout," a-t-il dit.'),
    ("an old\rMac", "vite"),
    *((f"run {i}", f"cours {i}") for i in range(100)),
]
WITH_TAB = [*PAIRS, ("a\tb", "c")]
EXPECTED = [tuple(" ".join(x.split()) for x in pair) for pair in WITH_TAB]
# what a cell holds that this program puts into quotes; and how many do
PROGRAMS = {
    "Excel": ('[,"\n\r\t]', 8),
    "LibreOffice": ('["\n\r\t]', 6),
    "all": ("", 2 * len(PAIRS)),
}


def sheet(rows, program):
    """The text of a sheet, as a program writes it with tabs."""

    def written(cell):
        doubled = cell.replace('"', '""')
        return f'"{doubled}"' if re.search(PROGRAMS[program][0], cell) else cell

    return "".join("\t".join(map(written, row)) + "\r\n" for row in rows)


@pytest.fixture
def write(tmp_path):
    def write(text, name="pairs.tsv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


@pytest.mark.filterwarnings("ignore:.*carriage return:UserWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_sheet_is_read_as_it_was_written(program, write):
    path = write(sheet([(*pair, "CC-BY") for pair in WITH_TAB], program))
    options = {"spreadsheet": True, "raw": True}
    assert read_pairs(path, **options) == EXPECTED
    turned = [pair[::-1] for pair in EXPECTED]
    assert read_pairs(path, **options, columns=(2, 1)) == turned
    paths = [
        write(sheet([(pair[i],) for pair in WITH_TAB], program), name)
        for i, name in enumerate(("a.en", "a.fr"))
    ]
    assert read_pairs(paths, **options) == EXPECTED


@pytest.mark.filterwarnings("ignore:.*(carriage return|not pairs):UserWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_quotes_stay_and_are_counted(program, write):
    path = write(sheet(PAIRS, program))
    with pytest.warns(UserWarning, match="stand in quotes") as told:
        pairs = read_pairs(path, raw=True, max_bad_share=0.5)
    assert ('"Yes, I know."' in dict(pairs)) == (program != "LibreOffice")
    (message,) = (str(x.message) for x in told if "stand in" in str(x.message))
    assert f"{path}: {PROGRAMS[program][1]} cells" in message
    first = next(p for p in pairs if p[0].startswith('"'))[0]
    assert first in message and "--spreadsheet" in message


HONEST = [
    ('"Yes," he said.', '"Oui", dit-il.'),
    ('"I know."', '"Je sais."'),
    ('He said "no".', 'Il a dit "non".'),
    ('"One sentence.', '"Une phrase.'),
    ('And another."', 'Et une autre."'),
    ('a 3" nail', "un clou"),
]


def test_the_quotes_of_a_text_stay_in_silence(write):
    path = write("".join("\t".join(pair) + "\n" for pair in HONEST))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_pairs(path, raw=True) == HONEST
        paths = [
            write("\n".join(side), f"{i}.txt")
            for i, side in enumerate(zip(*HONEST, strict=True))
        ]
        assert read_pairs(paths, raw=True) == HONEST


def test_a_line_that_no_spreadsheet_writes_is_unusable(write):
    """Each line up to the end of an open quote, and no line after it."""
    lines = [f"go {i}\tva {i}" for i in range(20)]
    lines[3:6] = ['"Yes," he said.\toui', '"open\tva', 'shut" it\tva']
    path = write("\n".join(lines))
    message = r"3 of 20 .*line 4, 5, 6.*quote within a cell.*doubled"
    with pytest.raises(DataError, match=message):
        read_pairs(path, spreadsheet=True)
    options = {"max_bad_share": 0.2, "spreadsheet": True}
    with pytest.warns(UserWarning, match="3 of 20 lines"):
        pairs = read_pairs(path, **options)
    assert len(pairs) == 17 and pairs[3] == ("go 6", "va 6")
    lines[5] = "go\tva"  # the quote is open to the end of the file
    write("\n".join(lines))
    with pytest.raises(DataError, match="17 of 20 .*line 4, 5, 6, 7, 8 …"):
        read_pairs(path, spreadsheet=True)


def test_a_quote_that_stays_open_takes_bounded_memory(write):
    lines = [f"go {i}\tva {i}" for i in range(100_000)]
    lines[9] = f'"{lines[9]}'
    path = write("\n".join(lines))
    with pytest.raises(DataError, match="lines are not pairs .line 10, 11"):
        read_pairs(path, spreadsheet=True)
