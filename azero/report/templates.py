"""The pages' templates."""

import functools
from importlib.resources import files

import jinja2


@functools.cache
def load_template(name: str) -> jinja2.Template:
    """Return the template `name` of this package.

    Texts are escaped, and a name that is missing is an error.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = files("azero.report").joinpath(name).read_text(encoding="utf-8")
    return environment.from_string(text)
