"""Whether a value is valid against a JSON Schema, by the package jsonschema, with bounds.

What a schema says is jsonschema's business. Here it gets what a trainer needs beside that: nothing
is fetched from a network, a schema is refused as a whole if a `$ref` of it leads nowhere, and no
answer takes long. A `pattern` is searched for by the package regex, which can be stopped, a list is
`uniqueItems` in linear time, and the keywords that are applied to one answer are counted.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import regex

from swift_rlvr.utils.errors import require
from swift_rlvr.verifiers.json_contradictions import contradiction_in
from swift_rlvr.verifiers.json_values import NotJson, canonical, read_json

# How much one answer may take: keywords that are applied, and the processor's seconds for patterns.
_MOST_STEPS = 30_000
# Keywords within keywords, of Python's 1,000 calls within calls. Each takes three, and up to six where
# jsonschema asks for the first error alone.
_DEEPEST = 200
_ASK_FOR_ONE = ("not", "if", "oneOf", "contains")
_PATTERN_SECONDS = 0.5
# The formats that jsonschema checks without any further package, so that a verdict is the same
# wherever it is installed.
_FORMATS = ("date", "email", "ipv4", "ipv6", "uuid")
# The errors that are shown.
_MOST_ERRORS = 20
# `$` is the end of the text in a schema; in Python it may stand before a line break at the end.
_DOLLAR = regex.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\$", regex.DOTALL)


class BadSchema(ValueError):
    """A schema that cannot be used."""


class TooMuchWork(Exception):
    """An answer whose check by this schema would take too long."""


class _TooDeep(TooMuchWork):
    """An answer and a schema that lead too deep."""


class SchemaError(NamedTuple):
    """What of a value is not valid: the path of the value, and what is wrong with it."""

    path: str
    problem: str


class Schema:
    """A schema that is ready for use; `read_schema` makes it.

    formats: whether the keyword `format` is checked, for those formats that jsonschema knows by
    itself, or only said.
    """

    def __init__(self, content: Any, formats: bool = False):
        import jsonschema
        import jsonschema_specifications
        import referencing.jsonschema

        cls = jsonschema.validators.validator_for(content, default=jsonschema.Draft202012Validator)
        try:
            # Patterns are looked at below, with the package that will search for them.
            cls.check_schema(content, format_checker=jsonschema.FormatChecker(formats=()))
        except jsonschema.SchemaError as error:
            where = "".join(f"[{part!r}]" for part in error.absolute_path)
            raise BadSchema(
                f"it is no valid schema: {error.message:.200} {where}".strip()
            ) from None
        keywords = {}
        for name, check in cls.VALIDATORS.items():
            keywords[name] = _counted(name, _BOUNDED.get(name, check))
        bounded = jsonschema.validators.extend(cls, keywords)
        # A registry of its own retrieves nothing, while the default one fetches what is remote.
        registry = jsonschema_specifications.REGISTRY
        checker = jsonschema.FormatChecker(formats=_FORMATS) if formats else None
        self._validator = bounded(content, registry=registry, format_checker=checker)
        specification = referencing.jsonschema.specification_with(cls.META_SCHEMA["$schema"])
        resource = specification.create_resource(content)
        try:
            names = _check_parts(registry.resolver_with_root(resource), resource)
        except AttributeError as error:  # of the package referencing, for some of draft 3
            raise BadSchema(f"its parts cannot be read: {error}") from None
        if {"unevaluatedProperties", "patternProperties"} <= names:
            # jsonschema searches for the patterns by itself there, and that cannot be stopped.
            raise BadSchema("unevaluatedProperties with patternProperties is not supported")
        self.content = content
        # One that never ends on these would be left ungraded, answer by answer.
        samples: tuple[Any, ...] = ({}, [], "", 0, None)
        for value in samples:
            try:
                self.errors(value)
            except _TooDeep:
                raise BadSchema("it refers to itself without end") from None
            except TooMuchWork:
                pass

    def errors(self, value: Any) -> list[SchemaError]:
        """What of a value is not valid, the first of it; empty where it is valid."""
        _LEFT.steps, _LEFT.seconds, _LEFT.depth = _MOST_STEPS, _PATTERN_SECONDS, 0
        errors = []
        try:
            for error in self._validator.iter_errors(value):
                errors.append(_short_error(error))
                if len(errors) == _MOST_ERRORS:
                    break
        except RecursionError:
            raise _TooDeep(f"more than {_DEEPEST} keywords stand within each other") from None
        except TimeoutError:
            raise TooMuchWork("a pattern takes too long") from None
        return errors


class _Left(threading.local):
    """What is left of the bounds for the answer that a thread checks."""

    steps = _MOST_STEPS
    seconds = _PATTERN_SECONDS
    depth = 0


_LEFT = _Left()


def _counted(name: str, check: Callable[..., Any]) -> Callable[..., Any]:
    """A keyword that counts how often it is applied, and within how many others. `anyOf` of references
    to the schema itself would take 2 to the power of the depth. One that never ends is stopped here:
    Python's own limit, if it is met in the compiled part of jsonschema, ends the process.
    """

    levels = 2 if name in _ASK_FOR_ONE else 1

    def counted(validator: Any, keyword: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _LEFT.steps -= 1
        if _LEFT.steps < 0:
            raise TooMuchWork(f"more than {_MOST_STEPS:,} keywords would be applied")
        _LEFT.depth += levels
        try:
            if _LEFT.depth > _DEEPEST:
                raise RecursionError
            yield from check(validator, keyword, instance, schema) or ()
        finally:
            _LEFT.depth -= levels

    return counted


def read_schema(text: object, formats: bool = False) -> Schema:
    """The schema that a text in JSON is, or an object; BadSchema where it cannot be used. The latest
    ones are kept.

    Also read is what surrounds one in a request to OpenAI: ``{"type": "json_schema", "json_schema":
    {"schema": ...}}``.

    >>> schema = read_schema('{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}')
    >>> schema.errors({"age": 3.0}), schema.errors({"age": "3"})
    ([], [SchemaError(path='$.age', problem="'3' is not of type 'integer'")])
    """
    require("jsonschema", extra="json", purpose="a JSON Schema")
    written = text if isinstance(text, str) else json.dumps(text)
    return _read(written, formats)


@lru_cache(maxsize=4096)
def _read(text: str, formats: bool) -> Schema:
    try:
        content = read_json(text)
    except NotJson as error:
        raise BadSchema(f"it is not JSON: {error}") from None
    for name in ("json_schema", "schema"):
        inner = content.get(name) if isinstance(content, Mapping) else None
        if isinstance(inner, Mapping) and "properties" not in content:
            content = inner
    if not isinstance(content, (Mapping, bool)):
        raise BadSchema(f"expected an object, got {content!r:.80}")
    schema = Schema(content, formats)
    if contradiction := contradiction_in(content):
        raise BadSchema(f"no answer can be valid against it: {contradiction}")
    return schema


def _check_parts(resolver: Any, resource: Any) -> set[str]:
    """The keywords of a schema and of all parts of it. BadSchema where a reference leads to nothing
    that it holds, or a pattern cannot be read: otherwise some answers would be graded and others not.
    """
    import referencing.exceptions

    content = resource.contents
    if isinstance(content, Mapping):
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = content.get(keyword)
            if not isinstance(reference, str):
                continue
            try:
                resolver.lookup(reference)
            except referencing.exceptions.Unresolvable:
                problem = f"{keyword} {reference!r:.80} leads to nothing in it"
                raise BadSchema(f"{problem}, and nothing is fetched") from None
        for pattern in (content.get("pattern"), *content.get("patternProperties", {})):
            if not isinstance(pattern, str):
                continue
            try:
                _compiled(pattern)
            except regex.error as error:
                raise BadSchema(f"the pattern {pattern!r:.80} cannot be read: {error}") from None
    keywords = set(content) if isinstance(content, Mapping) else set()
    for inner in resource.subresources():
        keywords |= _check_parts(resolver.in_subresource(inner), inner)
    return keywords


# --- Keywords with bounds


def _invalid(problem: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(problem)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield _invalid(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, inner in patterns.items():
        for key, value in instance.items():
            if _matches(pattern, key):
                yield from validator.descend(value, inner, path=key, schema_path=pattern)


def _additional_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not validator.is_type(instance, "object"):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    extras = []
    for key in instance:
        if key not in known and not any(_matches(pattern, key) for pattern in patterns):
            extras.append(key)
    if validator.is_type(inner, "object"):
        for key in extras:
            yield from validator.descend(instance[key], inner, path=key)
    elif inner is False and extras:
        yield _invalid(f"unexpected: {', '.join(map(repr, sorted(extras)))}")


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not unique or not validator.is_type(instance, "array"):
        return
    if len({canonical(value) for value in instance}) < len(instance):
        yield _invalid(f"{instance!r} has non-unique elements")


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """By the numbers as they are written: 19.99 is a multiple of 0.01, though no float says so."""
    if not validator.is_type(instance, "number"):
        return
    if (Fraction(str(instance)) / Fraction(str(factor))).denominator != 1:
        yield _invalid(f"{instance!r} is not a multiple of {factor}")


_BOUNDED = {
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; TimeoutError where that takes too long.

    The time is the processor's, so that the load of the machine changes no verdict.
    """
    start = time.process_time()
    found = _compiled(pattern).search(text, timeout=max(_LEFT.seconds, 0.001))
    _LEFT.seconds -= time.process_time() - start
    return found is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> Any:
    ends_of_text = _DOLLAR.sub(lambda match: r"\Z" if match[0] == "$" else match[0], pattern)
    return regex.compile(ends_of_text)


def _short_error(error: Any) -> SchemaError:
    """An error of jsonschema's, without the whole of a long value."""
    path = "$"
    for part in error.absolute_path:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    message = str(error.message)
    if len(message) > 200:
        message = f"{message[:80]} ... {message[-100:]}"
    return SchemaError(path, message)
