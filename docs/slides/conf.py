"""The slides: a deck for a chapter.

    python -m sphinx -W -b revealjs docs/slides docs/_build/slides

They are a Sphinx project of their own; the book does not see them. Nothing is
executed, and no page asks the network for anything: reveal.js comes with
sphinx-revealjs, MathJax from the book, pictures from the chapters.
"""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parent))

project = "Attention in Keras: slides"
author = "the d2l_attention contributors"
copyright = f"{author}; text and figures CC BY 4.0, code Apache 2.0"
extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx_revealjs", "deck"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
html_copy_source = False
html_favicon = "../_static/favicon.svg"
mathjax_path = "tex-svg.js"
revealjs_static_path = ["_static", "../_static/mathjax"]
revealjs_style_theme = "white"
revealjs_css_files = ["slides.css"]
revealjs_script_conf = {
    "width": 1280,
    "height": 720,
    "margin": 0,
    "center": False,
    "display": "flex",
    "controls": False,
    "hash": True,
    "slideNumber": "c/t",
    "transition": "none",
    "backgroundTransition": "none",
    "defaultTiming": 180,  # seconds, where a note says nothing
    "pdfSeparateFragments": False,
    "pdfMaxPagesPerSlide": 1,
}
revealjs_script_plugins = [
    {
        "name": f"Reveal{name}",
        "src": f"revealjs/plugin/{name.lower()}/{name.lower()}.js",
    }
    for name in ("Notes", "Highlight")
]
