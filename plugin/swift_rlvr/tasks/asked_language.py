"""The programming language that a question asks for, where it is another than Python.

A question may also only speak of a language: of Java code that is to be read, of a limit "in C++", of
the game Go. So a name alone says nothing. It counts in a sentence that asks for a program, in a label
such as "Language: C", in what the reader is said to be, and at a block that is to be filled.
"""

import re

# Names that are no other word, then those that are one, which count with a capital letter only.
_UNMISTAKABLE = (
    r"(?i:C\+\+(?:\d\d)?|C#|Java|JavaScript|TypeScript|Kotlin|PHP|Scala|Haskell|Golang|MATLAB|Fortran"
    r"|COBOL|OCaml|Objective-C)(?![\w+#])"
)
_WORDS = r"(?:Go|Swift|Rust|Ruby|Perl|Lua|Julia|Dart|Elixir|Pascal|Bash)\b"
_LETTERS = r"[CRD](?![\w+#'^*-])"
_NAME = rf"(?P<language>{_UNMISTAKABLE}|{_WORDS})"
_ANY = rf"(?P<language>{_UNMISTAKABLE}|{_WORDS}|{_LETTERS}|SQL\b)"
# What a fenced block is called. Blocks of SQL and of shells are as often data.
_LABEL = (
    r"(?P<language>cpp|c\+\+|c|java|javascript|js|typescript|ts|go|golang|rust|kotlin|swift|scala"
    r"|csharp|c#|cs|ruby|php|haskell)"
)
_FENCES = re.compile(rf"```[ \t]*(?:{_LABEL}|(?P<python>python3?|py3?))[ \t]*$", re.I | re.M)

_VERB = r"(?i:write|implement|create|develop|provide|give|submit|generate|produce)"
_PROGRAM = r"(?:program|function|code|solution|class|method|script|algorithm)s?\b"
_ADJECTIVE = r"(?:simple|short|complete|full|valid|correct|working|efficient)"
_WITHIN = r"[^.?!\n]{0,60}?"  # the same sentence
_END = r"(?= (?:to|that|which|and|with|programming|code)\b|[^\w +#-]|\.?\s*$)"
_START = r"(?:^|[.!?:;(\n]\s*|\b(?i:please|only) )"
_BE = r"\b(?i:must|should|shall|has to|have to|needs? to) be"
_WRITTEN = r"(?:written|implemented|coded)"
_ROLE = r"(?:programmer|developer|engineer|coder)s?\b"

# Ways to ask for it. A language may be named beside it: "in Python or C++".
_ASKS = [
    # Write a function ... in Java. Implement it in Java. Solve this using C++.
    rf"\b{_VERB}\b{_WITHIN}\b{_PROGRAM}{_WITHIN} (?:in|using) {_NAME}{_END}",
    rf"\b(?i:implement|complete|solve)\b{_WITHIN} (?:in|using) {_NAME}{_END}",
    rf"{_START}(?i:code|answer|respond|reply|program|write)\b{_WITHIN} (?:in|using) {_NAME}{_END}",
    # It must be in Java. The code should be written in C.
    rf"{_BE} (?:{_WRITTEN} )?in {_NAME}{_END}",
    rf"{_BE} {_WRITTEN} in {_ANY}{_END}",
    # Write a function in C. Code in C. Write a query in SQL. ... in the C programming language.
    rf"\b{_VERB}(?: (?!that|which)[\w-]+){{0,3}} (?:{_PROGRAM}|query|it|this) in {_ANY}{_END}",
    rf"{_START}(?i:code|answer|respond|reply) in {_ANY}{_END}",
    rf"\b(?i:write|implement|create|develop|solve|code|use)\b{_WITHIN} (?:in |using )?(?:the )?"
    rf"{_ANY} (?:programming )?language\b",
    # Write a C++ program, but not "a parser for Java code". Write an R script.
    rf"\b{_VERB}(?: (?!(?:that|for|of|from|which|to|in)\b)[\w-]+){{0,4}} {_NAME} {_PROGRAM}",
    rf"\b{_VERB}(?: (?:an?|some))?(?: {_ADJECTIVE})? {_ANY} (?:{_PROGRAM}|query|queries|statement)",
    rf"^\W*(?:An? )?{_ANY} (?:program|function|script) (?:to|that|which|for)\b",
    # Use Java. Use C++ to solve it.
    rf"{_START}(?i:use|using) (?:only )?{_NAME}(?= to (?:write|solve|implement|code)\b|\s*[.,!;)]|\s*$)[^.\n]*",
    # Language: C++
    r"\b(?i:lang(?:uage)?)\b\W{1,6}"
    rf"(?i:{_ANY})(?=\s*$|\s*[.,;)|*_`/])[^\n]*",
]
# Ways that count only where nothing speaks of Python.
_HINTS = [
    # You are an expert C++ programmer. An expert in Java.
    rf"\b(?i:you are|you're|act as|acting as|as) (?:[\w-]+,? ){{0,5}}?{_ANY} {_ROLE}",
    rf"\b(?i:you are|you're)\b{_WITHIN}\b(?:expert|programmer|developer|proficient)\b{_WITHIN} (?:in|at|with) {_NAME}",
    # Put it into a ```cpp block. Complete this: ```cpp
    rf"\b(?i:in|inside|into|within|between|with|using)(?: \w+){{0,2}} ['\"(]?```{_LABEL}\b",
    r"\b(?i:complete|starter|template|signature|begin with|start with|implement|fill in)\b[^`]{0,120}"
    rf"```{_LABEL}[ \t]*$",
]
# A sentence in which something else is in that language, or only like it.
_OTHERWISE = re.compile(
    r"(?i)python|\b(?:like|as in|similar to|equivalent|mimics?|behaves?|simulat\w+|emulat\w+)\b"
    r"|(?<!be )\bwritten in\b|\b(?:keywords?|identifiers?|comments?|literals?|syntax|notation|files|names?) (?:in|of)\b"
    r"|\b(?:for|of|from) (?:\w+ ){0,3}(?:code|programs?|sources?) in\b"
)
_ASKED = [re.compile(way, re.MULTILINE) for way in _ASKS]
_HINTED = [re.compile(way, re.MULTILINE) for way in _HINTS]


def asked_language(text: str) -> str | None:
    """The language in which a question wants a program, as it writes it; None for Python, or where it
    does not say.

    >>> asked_language("Write a C program that adds."), asked_language("Add the points in R.")
    ('C', None)
    >>> asked_language("Solve it in Python or C++."), asked_language("You are an expert Go developer.")
    (None, 'Go')
    """
    ways = _ASKED if "python" in text.casefold() else [*_ASKED, *_HINTED]
    for way in ways:
        for asked in way.finditer(text):
            if not _OTHERWISE.search(asked[0]):
                return asked["language"]
    return None


def language_of_blocks(text: str) -> str | None:
    """The language of an answer whose fenced blocks say one, and none that it is Python."""
    labels = [fence["language"] for fence in _FENCES.finditer(text)]  # None for Python
    if not labels or None in labels:
        return None
    return labels[-1]
