"""Texts that mean something where they stand unquoted: in SQL, a shell, a terminal, markdown."""

from __future__ import annotations

TEXTS = {
    "backtick": "`",
    "backticks": "a```b``",
    "quotes": "it's \"two\" ''",
    "statement": "'; DROP TABLE t; --",
    "backslash": "a\\",
    "escapes": "\\' \\n \\u0041 \\\\",
    "comment": "/* a */ -- b */",
    "braces": "{x} {0} {{y}} ${z}",
    "percent": "%s %27 %(x)s",
    "shell": "$(id) `id` | & > /dev/null #",
    "pattern": "*?[a-z]{b,c}",
    "path": "../..//etc/./passwd",
    "lines": "a\nERROR forged\r\n\n```\n# b",
    "blanks": " \t ",
    "markup": "[bold red]x[/] [/bold] [link=file:///etc]y[/link] :smile:",
    "markdown": "| a | **b** | [c](javascript:d) ![e](f)",
    "html": "<script>alert('x')</script><img src=x onerror=y> &lt;",
    "terminal": "\x1b[31mred\x1b]0;title\x07\x9b2J\x08",
    "controls": "a\x01b\x7fc\x85d",
    "direction": "\u202egpj\u2066.exe\u2028x",
    "wide": "é 𝄞 日本 \ufeff",
    "relation": "`src@after` st_now() __st_x",
    "labels": 'a="b",} 1\n# HELP',
    "yaml": "a: b\n- c #d\n{{ e }}",
    "null": "NULL",
    "empty": "",
}
"""Each by the place that it is meant for."""
