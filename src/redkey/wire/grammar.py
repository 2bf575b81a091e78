"""Closed schemas as regular expressions over canonical bytes: a faster way to accept a valid wire.

Canonical JSON has sorted keys and no spaces, and a wire's schema is closed and bounded: so the canonical bytes of valid
wires are, apart from rare shapes, a regular language. `grammar_of` reads the schema files, as the validator does, and
builds the expression of that language. A wire that matches it is valid, and its bytes are canonical by RFC 8785; the
validator checks any other wire. So the grammar may omit rare shapes (extensions, whole numbers written as 1.0), and
must never accept what the schema refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, product
from typing import Any, NamedTuple
from urllib.parse import urljoin

import orjson

from redkey.wire.plain_pattern import width_of
from redkey.wire.schema import checker_of, schemas

# Keywords without effect on validity.
_SILENT = frozenset({"$schema", "$id", "$defs", "title", "description"})
# The keywords that are read for each type; no other keyword can be expressed here.
_KNOWN: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties", "maxProperties"}),
    "string": frozenset({"pattern", "minLength", "maxLength"}),
    "array": frozenset({"items", "minItems", "maxItems", "uniqueItems"}),
    "integer": frozenset({"minimum", "maximum"}),
    "number": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
}
# Up to here orjson and the RFC write a double with a fraction in the same way.
_FRACTIONS_LIMIT = 10**15


class Inexpressible(Exception):
    """The schema has a rule that cannot be expressed here."""


class Never(Exception):
    """No value fits."""


class Rule(NamedTuple):
    """One schema that a value must match, its place, and the reference that led to it."""

    schema: Any
    base: str
    reference: str = ""


# Everything that a value must match.
Rules = Sequence[Rule]


def grammar_of(uri: str) -> re.Pattern[bytes] | None:
    """Return the expression of the schema with this `$id`; None if it cannot be expressed."""
    try:
        text = _value([Rule(schemas()[uri], uri)])
    except (Inexpressible, Never):
        return None
    return re.compile(_numbered(text).encode())


def _value(rules: Rules) -> str:
    rules = list(_expanded(rules))
    if any(rule.schema is False for rule in rules):
        raise Never
    listed = next((rule for rule in rules if "const" in rule.schema or "enum" in rule.schema), None)
    if listed is not None:
        return _listed(listed, [rule for rule in rules if rule is not listed])
    kinds = {str(rule.schema["type"]) for rule in rules if "type" in rule.schema}
    express = _EXPRESS.get(kinds.pop()) if len(kinds) == 1 else None
    if express is None:
        raise Inexpressible("a value of no type, or of several")
    return express(rules)


def _expanded(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Resolve the references and conjunctions of rules, and drop annotations."""
    for rule in rules:
        if rule.schema is True:
            continue
        if rule.schema is False:
            yield rule
            continue
        rest = {key: value for key, value in rule.schema.items() if key not in _SILENT}
        target = rest.pop("$ref", None)
        if target is not None:
            yield from _expanded([_referred(target, rule.base)])
        whole = [part for part in rest.get("allOf", ()) if "if" not in part]
        yield from _expanded(Rule(part, rule.base) for part in whole)
        cases = [part for part in rest.pop("allOf", ()) if "if" in part]
        if cases:
            rest["allOf"] = cases
        if rest:
            yield Rule(rest, rule.base, rule.reference)


def _referred(target: str, base: str) -> Rule:
    uri = urljoin(base, target)
    file, _, path = uri.partition("#")
    schema = schemas()[file]
    for step in path.split("/")[1:]:
        schema = schema[step]
    return Rule(schema, file, uri)


def _listed(rule: Rule, others: Rules) -> str:
    """Return the expression of an enum: the values that also match every other rule, by the validator."""
    values = [rule.schema["const"]] if "const" in rule.schema else rule.schema["enum"]
    if set(rule.schema) - {"const", "enum", "type"}:
        raise Inexpressible("a list of values with conditions")
    checkers = [checker_of({"$id": other.base, **other.schema}) for other in (*others, rule)]
    fitting = [value for value in values if all(checker.is_valid(value) for checker in checkers)]
    texts = [re.escape(orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()) for value in fitting]
    if not texts:
        raise Never
    return texts[0] if len(texts) == 1 else f"(?:{'|'.join(texts)})"


def _check_known(kind: str, rules: Rules, *also: str) -> None:
    for rule in rules:
        unknown = rule.schema.keys() - _KNOWN[kind] - {"type", *also}
        if unknown:
            raise Inexpressible(f"{', '.join(sorted(unknown))} of {kind}")


def _highest(rules: Rules, keyword: str, default: int) -> int:
    return max((rule.schema[keyword] for rule in rules if keyword in rule.schema), default=default)


def _lowest(rules: Rules, keyword: str) -> int:
    stated = [rule.schema[keyword] for rule in rules if keyword in rule.schema]
    if not stated:
        raise Inexpressible(f"no {keyword}")
    lowest: int = min(stated)
    return lowest


# Strings.


def _string(rules: Rules) -> str:
    _check_known("string", rules, "anyOf")
    chosen = {rule.reference for rule in rules}
    for rule in rules:
        if "anyOf" in rule.schema:
            choices = _choices(rule)
            others = [Rule({key: value for key, value in rule.schema.items() if key != "anyOf"}, rule.base)]
            others += [other for other in rules if other is not rule]
            narrower = [other for other in others if "anyOf" in other.schema]
            if chosen & choices.keys() or any(_choices(other).keys() <= choices.keys() for other in narrower):
                return _string(others)
            return f"(?:{'|'.join(_value([*others, choice]) for choice in choices.values())})"
    return _text(rules)


def _choices(rule: Rule) -> dict[str, Rule]:
    """Return the alternatives of a rule by their references."""
    if any(choice.keys() - _SILENT != {"$ref"} for choice in rule.schema["anyOf"]):
        raise Inexpressible("alternatives that have no name")
    choices = [_referred(choice["$ref"], rule.base) for choice in rule.schema["anyOf"]]
    return {choice.reference: choice for choice in choices}


def _text(rules: Rules) -> str:
    patterns = {rule.schema["pattern"] for rule in rules if "pattern" in rule.schema}
    plain = width_of(patterns.pop()) if len(patterns) == 1 else None
    if plain is None:
        raise Inexpressible("a string without a plain pattern, or with several")
    inner, (shortest, longest) = plain
    least, most = _highest(rules, "minLength", 0), min([longest, *_stated(rules, "maxLength")])
    if shortest >= least and longest <= most:
        return f'"{inner}"'
    return f'"(?=[^"]{{{least},{most}}}"){inner}"'


def _stated(rules: Rules, keyword: str) -> list[int]:
    return [rule.schema[keyword] for rule in rules if keyword in rule.schema]


# Numbers.


def _integer(rules: Rules) -> str:
    _check_known("integer", rules)
    return _between(_highest(rules, "minimum", -1), _lowest(rules, "maximum"))


def _number(rules: Rules) -> str:
    _check_known("number", rules)
    low, high = _highest(rules, "minimum", -1), _lowest(rules, "maximum")
    if low != 0 or type(high) is not int or high > _FRACTIONS_LIMIT:
        raise Inexpressible("fractions from elsewhere than 0, or beyond what is written out")
    # A fraction below 0.00001 may be written with an exponent.
    return rf"(?:{_between(0, high)}|(?:{_between(1, high - 1)}\.|0\.(?!00000))[0-9]{{0,17}}[1-9])"


def _between(low: int, high: int) -> str:
    """Return the expression of the whole numbers from `low` to `high`."""
    if type(low) is not int or type(high) is not int or low < 0:
        raise Inexpressible("numbers below 0, or without bounds")
    parts = ["0"] if low == 0 else []
    low = max(low, 1)
    # Full ranges of a length are combined: from 10 to 999 is a digit and one or two more.
    lengths = range(len(str(low)), len(str(high)) + 1)
    whole = [length for length in lengths if low <= _first(length) and 10**length - 1 <= high]
    if whole:
        parts.append(f"[1-9][0-9]{{{whole[0] - 1},{whole[-1] - 1}}}")
    for length in lengths:
        if length not in whole and low <= high:
            parts.append(_digits(str(max(low, _first(length))), str(min(high, 10**length - 1))))
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _first(length: int) -> int:
    """Return the first number above 0 with this count of digits."""
    return int(10 ** (length - 1))


def _digits(low: str, high: str) -> str:
    """Return the expression of the numbers between two of the same length."""
    if not low:
        return ""
    rest = len(low) - 1
    if low[0] == high[0]:
        return low[0] + _digits(low[1:], high[1:])
    parts: list[str] = []
    first, last = int(low[0]), int(high[0])
    if low[1:] != "0" * rest:
        parts.append(low[0] + _digits(low[1:], "9" * rest))
        first += 1
    upper = high[0] + _digits("0" * rest, high[1:]) if high[1:] != "9" * rest else ""
    last -= bool(upper)
    if first <= last:
        leading = str(first) if first == last else f"[{first}-{last}]"
        parts.append(leading + (f"[0-9]{{{rest}}}" if rest else ""))
    parts += [upper] if upper else []
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _boolean(rules: Rules) -> str:
    _check_known("boolean", rules)
    return "(?:true|false)"


# Lists and objects.


def _array(rules: Rules) -> str:
    _check_known("array", rules)
    least, most = _highest(rules, "minItems", 0), _lowest(rules, "maxItems")
    of_items = [Rule(rule.schema["items"], rule.base) for rule in rules if "items" in rule.schema]
    item = _value(of_items)
    if not 0 <= least <= most or not most:
        raise Inexpressible("a list that is always empty")
    apart = _all_different(of_items) if any(rule.schema.get("uniqueItems") for rule in rules) and most > 1 else ""
    more = f"(?:,{item}){{{max(0, least - 1)},{most - 1}}}" if most > 1 else ""
    return rf"\[(?:\]|{apart}{item}{more}\])" if least == 0 else rf"\[{apart}{item}{more}\]"


def _all_different(of_items: Rules) -> str:
    """Return the lookahead for a list of strings without duplicates."""
    stated = [rule.schema for rule in _expanded(of_items)]
    if not any(schema.get("type") == "string" or {*map(type, schema.get("enum", [0]))} == {str} for schema in stated):
        raise Inexpressible("a list without duplicates whose items are not strings")
    item = '"[^"]*"'
    return rf"(?!(?:{item},)*(?P<twice>{item}),(?:{item},)*(?P=twice)[,\]])"


def _numbered(text: str) -> str:
    """Give each group a unique name: one list may be part of several alternatives."""
    numbers = count()
    return re.sub(r"(?<=\?P)<twice>(.*?)\(\?P=twice\)", lambda m: f"<t{(n := next(numbers))}>{m[1]}(?P=t{n})", text)


def _object(rules: Rules) -> str:
    _check_known("object", rules, "allOf", "dependentRequired")
    cases = [case for rule in rules for case in _cases(rule)]
    plain = [
        rule._replace(schema={k: v for k, v in rule.schema.items() if k not in ("allOf", "dependentRequired")})
        for rule in rules
    ]
    variants: list[str] = []
    for present in product((False, True), repeat=len(cases)):
        chosen = [then if there else _without(name) for there, (name, then) in zip(present, cases, strict=True)]
        try:
            variants.append(_members([*plain, *_expanded(chosen)]))
        except Never:
            continue
    if not variants:
        raise Never
    return variants[0] if len(variants) == 1 else f"(?:{'|'.join(variants)})"


def _cases(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """Return the conditional rules: the field, and what applies if it is present."""
    for name, others in rule.schema.get("dependentRequired", {}).items():
        yield name, Rule({"required": [name, *others]}, rule.base)
    for case in rule.schema.get("allOf", ()):
        condition = {key: value for key, value in case["if"].items() if key not in _SILENT}
        if condition.keys() != {"required"} or len(condition["required"]) != 1 or "else" in case:
            raise Inexpressible("a condition on more than one field's presence")
        (name,) = condition["required"]
        yield name, Rule({"allOf": [{"required": [name]}, case["then"]]}, rule.base)


def _without(name: str) -> Rule:
    return Rule({"properties": {name: False}}, "")


def _members(rules: Rules) -> str:
    """Return the members of an object in the order of their names."""
    _check_known("object", rules)
    closed = [rule.schema.get("properties", {}) for rule in rules if rule.schema.get("additionalProperties") is False]
    if not closed or any(rule.schema.get("additionalProperties", True) not in (True, False) for rule in rules):
        raise Inexpressible("an object that is open")
    required = {name for rule in rules for name in rule.schema.get("required", ())}
    members: list[tuple[bool, str]] = []
    for name in sorted({name for rule in rules for name in rule.schema.get("properties", {})} | required):
        of_member = [
            Rule(rule.schema["properties"][name], rule.base)
            for rule in rules
            if name in rule.schema.get("properties", {})
        ]
        try:
            if not all(name in known for known in closed):
                raise Never
            members.append((name in required, f'"{re.escape(name)}":{_value(of_member)}'))
        except (Inexpressible, Never):
            if name in required:
                raise
    if len(members) > min([len(members), *_stated(rules, "maxProperties")]):
        raise Inexpressible("a bound on the number of fields")
    return rf"\{{{_joined(members)}\}}"


def _joined(members: Sequence[tuple[bool, str]]) -> str:
    """Join members with commas; optional ones may be missing."""
    first = next((index for index, (needed, _) in enumerate(members) if needed), len(members))
    after = "".join(f",{text}" if needed else f"(?:,{text}|)" for needed, text in members[first + 1 :])
    if first < len(members):
        before = "".join(f"(?:{text},|)" for _, text in members[:first])
        return before + members[first][1] + after
    heads = ["".join([members[at][1], *(f"(?:,{text}|)" for _, text in members[at + 1 :])]) for at in range(first)]
    return f"(?:{'|'.join([*heads, ''])})"


_EXPRESS = {
    "object": _object,
    "string": _string,
    "array": _array,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}
