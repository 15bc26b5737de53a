"""The web book: chapters as they are committed, pages, and the reference.

    python -m sphinx -W -b html docs docs/_build/html

Nothing is executed, and no page asks the network for anything.
"""

import base64
from collections import Counter
import html
import importlib
import inspect
import json
import os
from pathlib import Path
import re
import runpy
import shutil

from docutils import nodes
import jieba

HERE = Path(__file__).parent
ROOT = HERE.parent
# The address of the repository, "https://github.com/…". With it, chapters open
# in Colab and Binder.
REPOSITORY = os.environ.get("BOOK_REPOSITORY", "")

# The chapters lie beside the pages under their path in the repository, so
# that links between them hold in both places.
shutil.copytree(
    ROOT / "notebooks",
    HERE / "notebooks",
    dirs_exist_ok=True,
    ignore=shutil.ignore_patterns(".*"),
)

project = "d2l_attention"
author = "the d2l_attention contributors"
copyright = f"{author}; text and figures CC BY 4.0, code Apache 2.0"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "slides", "**/.ipynb_checkpoints"]
html_theme = "sphinx_book_theme"
html_title = "Attention in Keras"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_search_language = "zh"  # English too
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system
html_theme_options = {
    "navbar_persistent": [],  # the sidebar has the search field
    "use_download_button": True,
    "show_toc_level": 2,
    "max_navbar_depth": 1,  # deeper ones unfold by signs without a name
}
if REPOSITORY:
    html_theme_options |= {
        "repository_url": REPOSITORY,
        "repository_branch": "main",
        "path_to_docs": "",
        "use_repository_button": True,
        "launch_buttons": {
            "colab_url": "https://colab.research.google.com",
            "binderhub_url": "https://mybinder.org",
            "notebook_interface": "jupyterlab",
        },
    }
mathjax_path = "mathjax/tex-svg.js"
nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show = "Code"  # of a folded cell that has no name of its own
nb_code_prompt_hide = "Code"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autosummary_generate = False
default_role = "code"
napoleon_custom_sections = [("Call arguments", "params_style")]
suppress_warnings = ["mystnb.unknown_mime_type"]


def read_chinese_terms():
    """The Chinese terms that the glossary has for each chapter."""
    terms = {}
    for row in (HERE / "glossary.md").read_text(encoding="utf-8").splitlines():
        if row.count(" | ") == 3:
            _, chinese, _, chapters = row.split(" | ")
            found = re.findall(r"(?:又译)?([\u4e00-\u9fff]{2,})", chinese)
            for chapter in re.findall(r"notebooks/\w+", chapters):
                terms.setdefault(chapter, []).extend(found)
    return terms


TERMS = read_chinese_terms()


def know_chinese_terms():
    """Index the glossary's terms whole, not only their parts."""
    for term in {term for terms in TERMS.values() for term in terms}:
        jieba.add_word(term)


def find_in_chinese(app, doctree):
    """The search finds a chapter by its Chinese terms, too."""
    if terms := TERMS.get(app.env.docname):
        app.env.note_dependency("glossary.md")
        content = ",".join(terms)
        doctree.append(nodes.meta("", name="keywords", content=content))


def link_within_the_book(app, name, lines):
    """Links to chapters and pages hold on the site of the code and here."""
    lines[0] = re.sub(r"\]\(\.\./((\.\./)*notebooks/)", r"](\1", lines[0])
    lines[0] = lines[0].replace("](../docs/", "](../")


NAMES = re.compile(r"^@names (\S+) ?(\w*)$", re.MULTILINE)
KERAS = "call, build, compute_output_spec, compute_output_shape, get_config, "
KERAS += "from_config"  # what Keras describes


def list_names(app, name, lines):
    """The names of a module, or of one room of it: a line each, then all."""

    def listed(match):
        module, room = importlib.import_module(match[1]), match[2]
        things = {
            key: thing
            for key, thing in vars(module).items()
            if not key.startswith("_")
            and not inspect.ismodule(thing)
            and f"{match[1]}.{room}" in getattr(thing, "__module__", "")
        }
        text = f".. currentmodule:: {match[1]}\n\n.. autosummary::\n"
        text += "   :nosignatures:\n\n"
        text += "".join(f"   {key}\n" for key in sorted(things, key=str.lower))
        for key in sorted(things, key=str.lower):
            if inspect.isclass(things[key]):
                text += f"\n.. autoclass:: {key}\n   :members:\n"
                text += f"   :exclude-members: {KERAS}\n"
            else:
                text += f"\n.. autofunction:: {key}\n"
        return f"```{{eval-rst}}\n{text}```"

    lines[0] = NAMES.sub(listed, lines[0])


def show_the_viewer(app, error):
    """The page that shows a map to touch, as the viewer is now."""
    if error is None:
        view = runpy.run_path(str(HERE / "grid.py"))["view"]()
        view.save(Path(app.outdir) / "_static" / "grid.html")


FRAME = re.compile(
    r'<iframe [^>]*title="([^"]*), to explore"[^>]*srcdoc="([^"]*)"'
)


def show_the_explorables(app, error):
    """Each page in the frame of a chapter opens alone, too."""
    folder = Path(app.outdir) / "_static" / "explorables"
    folder.mkdir(exist_ok=True)
    for path in sorted((HERE / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        outputs = (
            "".join(output.get("data", {}).get("text/html", ""))
            for cell in notebook["cells"]
            for output in cell.get("outputs", [])
        )
        for title, page in FRAME.findall("".join(outputs)):
            name = "-".join(re.findall(r"\w+", html.unescape(title).lower()))
            file = folder / f"{name}.html"
            file.write_text(html.unescape(page), encoding="utf-8")


def show_equations(app, what, name, thing, options, lines):
    """An indented block of a docstring is an equation, line by line.

    Elsewhere |x| is a size, not a substitution.
    """
    shown, before, inside = [], "", False
    for line in lines:
        indented = line.startswith("    ")
        begins = indented and not before.startswith(" ") and shown[-1:] == [""]
        if begins and not before.endswith(":"):
            shown += ["::", ""]
            inside = True
        elif line and not indented:
            inside = False
        if not inside:
            line = re.sub(r"(?<!`)\|(?!`)", r"\\|", line)
        shown.append(line)
        before = line or before
    lines[:] = shown


def link_the_graph(app, page, template, context, doctree):
    """The graph of *Start here* is no picture: its boxes are links."""

    def drawn(match):
        text = (HERE / "prerequisites.svg").read_text(encoding="utf-8")
        _, _, text = text.partition("<svg ")
        text = re.sub(r'"\.\./(notebooks/\w+)\.ipynb"', r'"\1.html"', text)
        return (
            '<svg role="group" aria-label="Which chapter comes before which" '
            'aria-describedby="graph" style="display: block; margin: auto; '
            f'width: 26rem; max-width: 100%; height: auto" {text}'
        ).replace("<metadata>", f'<desc id="graph">{match[1]}</desc><metadata>')

    if "body" in context:
        image = r'<img alt="([^"]*)" src="_images/prerequisites\.svg" />'
        context["body"] = re.sub(image, drawn, context["body"])


PICTURE = re.compile(
    r"<a\b[^>]*>\s*<img.*?</a>|<figure\b.*?</figure>|<img\b[^>]*>", re.DOTALL
)


def _embedded(drawing):
    picture = base64.b64encode(drawing.read_bytes()).decode()
    return f"data:image/svg+xml;base64,{picture}"


NARROW = {  # a drawing of a chapter → the same for a phone
    _embedded(path.with_stem(path.stem.removesuffix("_narrow"))): path
    for path in (ROOT / "course/drawings").glob("*_narrow.svg")
}


def narrow_drawings(app, page, template, context, doctree):
    """On a phone a drawing is shown in its narrow form, if it has one."""

    def add(match):
        narrow = NARROW.get(match[1])
        if narrow is None:
            return match[0]
        return (
            '<picture><source media="(max-width: 600px)" '
            f'srcset="{_embedded(narrow)}">{match[0]}</picture>'
        )

    if "body" in context:
        image = r'<img\b[^>]*\bsrc="(data:image/svg\+xml;base64,[^"]*)"[^>]*>'
        context["body"] = re.sub(image, add, context["body"])


def name_figures(app, page, template, context, doctree):
    """Each picture gets an address, made from its caption or description."""
    seen = Counter()

    def name(match):
        text = match[0]
        caption = re.search(r"<figcaption>(.*)</figcaption>", text, re.DOTALL)
        said = caption or re.search(r'\balt="([^"]+)"', text)
        if text.startswith("<a") or "headerlink" in text or not said:
            return text
        said = html.unescape(re.sub(r"<[^>]*>", "", said[1])).lower()
        address = "-".join(["figure", *re.findall(r"\w+", said)[:8]])
        seen[address] += 1
        if seen[address] > 1:
            address += f"-{seen[address]}"
        link = (
            f'<a class="headerlink" href="#{address}" '
            'aria-label="Link to this figure">#</a>'
        )
        if text.startswith("<img"):
            return f'<span class="picture" id="{address}">{text}{link}</span>'
        end = "</figcaption>" if caption else "</figure>"
        text = text.replace("<figure", f'<figure id="{address}"', 1)
        return text.replace(end, link + end)

    if "body" in context:
        context["body"] = PICTURE.sub(name, context["body"])


def setup(app):
    know_chinese_terms()
    app.connect("doctree-read", find_in_chinese)
    app.connect("html-page-context", link_the_graph)
    app.connect("html-page-context", name_figures)
    app.connect("html-page-context", narrow_drawings)
    app.connect("build-finished", show_the_viewer)
    app.connect("build-finished", show_the_explorables)
    app.connect("source-read", link_within_the_book)
    app.connect("source-read", list_names)
    # Before Napoleon, which reads the sections of a docstring.
    app.connect("autodoc-process-docstring", show_equations, priority=400)
