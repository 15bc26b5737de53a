"""Write a run as a SavedModel; see `python -m d2l_attention export --help`."""

import argparse
import json
from pathlib import Path
import shutil
import tempfile

from d2l_attention.translator.commands import (
    add_search_options,
    errors_in_a_line,
    find_devices,
    search_options,
)
from d2l_attention.translator.run_folder import SUBWORD_FILES, WORD_FILES, Run
import keras

EPILOG = """\
FOLDER holds `model`, a SavedModel, and the vocabularies of the run. The model
needs TensorFlow only. Its function `serve` takes int32 ids (sentences, tokens)
and returns the ids of the translations. Id 0 is padding and follows the last
token. `about.json` says how long a sentence may be and how it was searched.
"""


@errors_in_a_line
def main(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention export",
        description="Write a run as a SavedModel that translates ids.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", help="the run folder")
    parser.add_argument("folder", type=Path, help="a new folder")
    add_search_options(parser)
    options = parser.parse_args(arguments)
    search = search_options(parser, options)
    find_devices()
    if options.folder.exists():
        raise FileExistsError(
            f"{options.folder} is there already. Name a new folder."
        )
    translator, what = Run(options.run).load()
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=options.folder.parent, prefix=f".{options.folder.name}."
    ) as beside:
        whole = Path(beside, "whole")
        write_export(translator, whole, options.run, **search)
        whole.rename(options.folder)
    print(f"Wrote {what} to {options.folder}.")
    return 0


def write_export(translator, folder, run, beam, length_penalty):
    """Write the SavedModel, the vocabularies, and what a caller must know."""
    decoder = translator.decoder(beam, length_penalty)
    decoder.build((None, translator.max_length))
    decoder.export(
        folder / "model",
        verbose=False,
        input_signature=[
            keras.InputSpec(dtype="int32", shape=(None, None), name="source")
        ],
    )
    for name in (*WORD_FILES, *SUBWORD_FILES):
        if Path(run, name).exists():
            shutil.copy(Path(run, name), folder)
    about = {
        "max_length": translator.max_length,
        "max_translation_length": decoder.max_length,
        "beam": beam,
        "length_penalty": length_penalty,
        "padding_id": 0,
        "unknown_id": 1,
        "end_id": decoder.end_id,
    }
    text = json.dumps(about, indent=2) + "\n"
    (folder / "about.json").write_text(text, encoding="utf-8")
