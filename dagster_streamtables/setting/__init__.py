"""Settings: each is declared once, as a field with its type, its constraint, and its description.

    max_consecutive_errors: Annotated[int, Range(0)] = 3
    '''The table is suspended after this many errors in a row.'''

The check of its values, its key in the header of a file, its field in YAML, its error messages and
its row in the documentation are derived from this declaration.
"""

from dagster_streamtables.setting.check import (
    FILLED,
    INTERNAL,
    Normalized,
    Range,
    Shown,
    Where,
    allows_none,
    checked,
    described,
    normalize_fields,
    plain,
    require,
)
from dagster_streamtables.setting.declaration import Setting, settings_of, undescribed
from dagster_streamtables.setting.text import read_environment, read_text

__all__ = [
    "FILLED",
    "INTERNAL",
    "Normalized",
    "Range",
    "Setting",
    "Shown",
    "Where",
    "allows_none",
    "checked",
    "described",
    "normalize_fields",
    "plain",
    "read_environment",
    "read_text",
    "require",
    "settings_of",
    "undescribed",
]
