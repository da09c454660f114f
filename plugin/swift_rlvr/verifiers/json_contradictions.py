"""Whether it is plain that no value is valid against a JSON Schema: every answer would earn 0."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
# Lists of parts of which one has to hold.
_ONE_OF = ("anyOf", "oneOf")
# References that are followed from one to the next.
_LONGEST_CHAIN = 20
_NO_BOUNDS = {
    "minimum": -math.inf,
    "exclusiveMinimum": -math.inf,
    "maximum": math.inf,
    "exclusiveMaximum": math.inf,
}
# Bounds of a type of which the first must not be above the second.
_RANGES = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}


def contradiction_in(schema: Any) -> str:
    """Why it is plain that no value is valid; empty for other schemas, of which nothing is said.

    >>> contradiction_in({"required": ["a"], "type": "object", "properties": {"a": False}}), contradiction_in({})
    ('properties.a is false', '')
    >>> contradiction_in({"type": "integer", "minimum": 5, "maximum": 3})
    'no integer meets minimum 5, maximum 3'
    """
    contradictions = _Contradictions(schema)
    return contradictions.latest if contradictions.is_one(schema, "", ()) else ""


class _Contradictions:
    """Looks for a part of a schema that has to hold and that no value meets.

    path: where a part stands. behind: the references that led to it. One that leads back to itself has
    no value that ends.
    """

    def __init__(self, root: Any):
        self.root = root
        self.latest = ""  # what contradicts, in words
        # References within a part with an address of its own count from there.
        self.follows = '"$id"' not in json.dumps(root)
        self.met: set[str] = set()  # references to what some value may meet

    def is_one(self, schema: Any, path: str, behind: tuple[str, ...]) -> bool:
        if not isinstance(schema, Mapping):
            return schema is False and self._found("is false", path)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            # What stands beside a reference counts in newer drafts only.
            return self._leads_to_one(reference, behind)
        if schema.get("not") in (True, {}):
            return self._found("has a `not` of everything", path)
        return self._in_parts(schema, path, behind) or self._in_values(schema, path, behind)

    def _found(self, problem: str, path: str) -> bool:
        self.latest = f"{path.removeprefix('.') or 'it'} {problem}"
        return True

    def _leads_to_one(self, reference: str, behind: tuple[str, ...]) -> bool:
        if reference in behind:
            return self._found("needs itself, without end", reference)
        if not self.follows or reference in self.met or len(behind) == _LONGEST_CHAIN:
            return False
        target = self.root
        if reference != "#":
            for part in reference.removeprefix("#/").split("/"):
                key = part.replace("~1", "/").replace("~0", "~")
                target = target.get(key) if isinstance(target, Mapping) else None
        if self.is_one(target, reference, (*behind, reference)):
            return True
        self.met.add(reference)
        return False

    def _in_parts(self, schema: Mapping[str, Any], path: str, behind: tuple[str, ...]) -> bool:
        """Whether one of the parts that all have to hold contradicts, or each of those of which one
        has to.
        """

        def contradict(keyword: str) -> Iterator[bool]:
            for number, part in enumerate(schema.get(keyword, ())):
                yield self.is_one(part, f"{path}.{keyword}.{number}", behind)

        if any(contradict("allOf")):
            return True
        return any(schema.get(keyword) and all(contradict(keyword)) for keyword in _ONE_OF)

    def _in_values(self, schema: Mapping[str, Any], path: str, behind: tuple[str, ...]) -> bool:
        """Whether no value that is listed has the type, or none of any type is valid."""
        types = schema.get("type", list(_TYPES))
        types = [types] if isinstance(types, str) else types
        if not set(types) <= set(_TYPES):  # draft 3 has more
            return False
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if values is None:
            return all(self._has_none(name, schema, path, behind) for name in types)
        if any(_is_of(value, types) for value in values):
            return False
        return self._found(f"has no value of the type {' or '.join(types)}", path)

    def _has_none(
        self, name: str, schema: Mapping[str, Any], path: str, behind: tuple[str, ...]
    ) -> bool:
        """Whether no value of one type is valid."""
        where = f" at {path.removeprefix('.')}" if path else ""
        if name in ("integer", "number") and _has_no_number(schema, whole=name == "integer"):
            bounds = [f"{key} {schema[key]}" for key in _NO_BOUNDS if key in schema]
            self.latest = f"no {name} meets {', '.join(bounds)}{where}"
            return True
        if name in _RANGES:
            least, most = _RANGES[name]
            if schema.get(least, 0) > schema.get(most, math.inf):
                self.latest = f"{least} {schema[least]} is above {most} {schema[most]}{where}"
                return True
        if name == "array" and schema.get("minItems", 0) > 0 and "prefixItems" not in schema:
            return self.is_one(schema.get("items"), f"{path}.items", behind)
        return name == "object" and self._needs_one(schema, path, behind)

    def _needs_one(self, schema: Mapping[str, Any], path: str, behind: tuple[str, ...]) -> bool:
        """Whether a property that an object needs has no value."""
        required = schema.get("required")
        if not isinstance(required, (list, tuple)):  # draft 3 has a boolean
            return False
        properties = schema.get("properties", {})
        is_closed = schema.get("additionalProperties") is False
        is_closed = is_closed and "patternProperties" not in schema
        for key in required:
            place = f"{path}.properties.{key}"
            if key in properties:
                if self.is_one(properties[key], place, behind):
                    return True
            elif is_closed:
                return self._found("is required, and additionalProperties is false", place)
        return False


def _is_of(value: Any, types: Sequence[str]) -> bool:
    """Whether a value may be of one of these types."""
    if isinstance(value, bool):  # an int in Python
        return "boolean" in types
    return any(isinstance(value, _TYPES[name]) for name in types)


def _has_no_number(schema: Mapping[str, Any], whole: bool) -> bool:
    """Whether the bounds of a schema leave no number."""
    bounds = dict(_NO_BOUNDS)
    for key in bounds:
        # In draft 4 the exclusive ones are booleans.
        if not isinstance(schema.get(key, True), bool):
            bounds[key] = schema[key]
    lowest = max(bounds["minimum"], bounds["exclusiveMinimum"])
    highest = min(bounds["maximum"], bounds["exclusiveMaximum"])
    is_above = lowest == bounds["exclusiveMinimum"]
    is_below = highest == bounds["exclusiveMaximum"]
    if lowest > highest or (lowest == highest and (is_above or is_below)):
        return True
    if not whole or math.isinf(lowest) or math.isinf(highest):
        return False
    first = math.floor(lowest) + 1 if is_above else math.ceil(lowest)
    last = math.ceil(highest) - 1 if is_below else math.floor(highest)
    return first > last
