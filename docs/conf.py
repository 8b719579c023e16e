"""How the documentation site is built: `make docs`. Nothing is fetched, warnings are errors."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import likeminds

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "likeminds"
author = "The likeminds developers"
copyright = author  # noqa: A001
version = release = likeminds.__version__

extensions = [
    "mathml",
    "myst_nb",
    "numpydoc",
    "plain_docstrings",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "**sg_execution_times.rst"]
templates_path = ["_templates"]

# Pages: those with code are run by pytest, notebooks by `python -m tools.notebooks`.
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# The reference: signatures as they are written, methods on the page of their class, and links from
# names in backticks.
default_role = "py:obj"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Pictures are drawn anew by every build, from data that is simulated or bundled.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "ignore_pattern": r"notebooks",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "parallel": True,
    "doc_module": ("likeminds",),
    "reference_url": {"likeminds": None},
    "backreferences_dir": "api/backreferences",
}

html_theme = "pydata_sphinx_theme"
html_title = "likeminds"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "../src/likeminds/service/page/icon.svg"
html_favicon = html_logo
html_show_sourcelink = False
html_sidebars = {"index": [], "tutorial": []}  # pages with nothing below them have the whole width
html_theme_options = {
    "logo": {"text": "likeminds"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "header_links_before_dropdown": 7,
}


# Members by which modules of the package ask rankers about their capabilities and training data.
_INTERNAL = {
    *("fingerprint_of", "fitted_on_annotations_", "has_attributes", "has_default_grid"),
    *("has_levels", "has_part_worths", "has_standard_errors", "item_names", "item_posteriors"),
    *("item_posteriors_of", "item_scores", "rankers_", "response_style", "scorable_ids"),
    *("scores_by_weights", "set_callbacks", "takes_newcomers", "takes_updates"),
    *("training_annotations_", "training_items"),
}


def skip_member(_app: Sphinx, _what: str, name: str, member: Any, skip: bool, _o: Any) -> bool:
    """Leave out scikit-learn's own methods and members that users do not call."""
    inherited = str(getattr(member, "__module__", "")).startswith("sklearn.")
    # The verb of a model is the class `Verb`; that of annotations is the text that the user passed.
    getter = getattr(getattr(member, "fget", None), "__qualname__", "")
    internal = name.rpartition(".")[2] in _INTERNAL or getter == "ReadableModel.verb"
    return skip or inherited or internal


def link_scripts(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Link examples to their pages; in the repository, the same links lead to their scripts."""
    text = re.sub(
        r"\]\((?:\.\./)+examples/notebooks/(\w+)\.py\)", r"](/notebooks/\1.ipynb)", source[0]
    )
    source[0] = re.sub(r"\]\((?:\.\./)+examples/(\w+)\.py\)", r"](/gallery/\1.rst)", text)


def end_code(_app: Sphinx, page: nodes.document) -> None:
    """Leave out the empty lines with which pages end their code for pytest."""
    for block in page.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip("\n")
            block.children = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> None:
    """Register the above."""
    app.connect("source-read", link_scripts)
    app.connect("doctree-read", end_code)
    app.connect("autodoc-skip-member", skip_member)
