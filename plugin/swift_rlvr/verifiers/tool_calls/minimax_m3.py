"""Arguments as MiniMax M3 writes them: an element by the name of each argument, in which objects are
elements by the names of their keys, and lists are elements `item`.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from swift_rlvr.verifiers.tool_calls.calls import BadCall

# What stands before each tag, so that texts may hold any tag.
NAMESPACE = "]<]minimax[>["
_TAG = re.compile(re.escape(NAMESPACE) + r"<(/?)([^<>\n]+)>")
_DEEPEST = 50


class _Element:
    """What stands in an element: texts, and elements by their names."""

    def __init__(self, name: str):
        self.name = name
        self.text = ""
        self.inner: list[_Element] = []


def arguments_and_values(
    content: str, schemas: Mapping[str, Any], typed: Callable[[str, str], Any]
) -> list[tuple[str, Any]]:
    """The arguments of a call with their values. typed: reads a text as a value of a type.

    >>> text = "<a>1</a><b><item>x</item></b>".replace("<", NAMESPACE + "<")
    >>> arguments_and_values(text, {}, lambda text, kind: text)
    [('a', '1'), ('b', ['x'])]
    """
    open_elements = [_Element("")]
    place = 0
    for tag in _TAG.finditer(content):
        open_elements[-1].text += content[place : tag.start()]
        place = tag.end()
        if not tag[1]:
            element = _Element(tag[2])
            open_elements[-1].inner.append(element)
            open_elements.append(element)
        elif open_elements[-1].name == tag[2]:
            open_elements.pop()
        else:
            raise BadCall(f"{tag[2]!r:.80} is closed and was not opened")
        if len(open_elements) > _DEEPEST:
            raise BadCall("its arguments are nested too deep")
    if len(open_elements) > 1:
        raise BadCall(f"{open_elements[-1].name!r:.80} is not closed")
    (whole,) = open_elements
    if (whole.text + content[place:]).strip():
        raise BadCall(f"there is text between the arguments: {content.strip()!r:.80}")
    return [(each.name, _value(each, schemas.get(each.name), typed)) for each in whole.inner]


def _value(element: _Element, schema: Any, typed: Callable[[str, str], Any]) -> Any:
    schema = schema if isinstance(schema, Mapping) else {}
    kind = schema.get("type")
    if not element.inner:
        return typed(element.text, kind if isinstance(kind, str) else "")
    if element.text.strip():
        raise BadCall(f"there is text between elements: {element.text.strip()!r:.80}")
    names = [each.name for each in element.inner]
    if kind != "object" and set(names) == {"item"}:
        return [_value(each, schema.get("items"), typed) for each in element.inner]
    if len(set(names)) < len(names):
        raise BadCall(f"a key of {element.name!r:.80} stands twice")
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    return {each.name: _value(each, properties.get(each.name), typed) for each in element.inner}
