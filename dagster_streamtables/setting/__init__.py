"""Settings: each is declared once, as a field with its type, its constraint, and its description.

    max_consecutive_errors: Annotated[int, Range(0)] = 3
    '''The table is suspended after this many errors in a row.'''

The check of its values, its key in the header of a file, its field in YAML, its error messages and
its row in the documentation are derived from this declaration.
"""

from dagster_streamtables.setting.declaration import Setting, missing_descriptions, settings_of
from dagster_streamtables.setting.values import (
    INTERNAL,
    NON_EMPTY,
    Display,
    Normalizer,
    Predicate,
    Range,
    allows_none,
    check_arguments,
    describe,
    normalize_fields,
    plain,
    read_environment,
    read_text,
    require,
)

__all__ = [
    "INTERNAL",
    "NON_EMPTY",
    "Display",
    "Normalizer",
    "Predicate",
    "Range",
    "Setting",
    "allows_none",
    "check_arguments",
    "describe",
    "missing_descriptions",
    "normalize_fields",
    "plain",
    "read_environment",
    "read_text",
    "require",
    "settings_of",
]
