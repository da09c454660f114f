"""Calls of tools: read in the ways in which models write them, and compared with the right ones.

`formats` has a table of the ways that begin with a mark, such as Hermes's and Qwen's ``<tool_call>``, with a
reader for each. Without a mark are Llama's JSON with ``parameters``, a list or objects of JSON alone
(`json_calls`), and Python calls, which are parsed and never evaluated (`python_calls`).

`reading.calls_in` says which calls a text makes, `rows` what the tools and the right calls of a row are,
and `comparison.Comparer` which calls are right.
"""

from swift_rlvr.verifiers.tool_calls.calls import MOST_CHARS, BadCall, Call, GoldCall, Tool
from swift_rlvr.verifiers.tool_calls.comparison import Comparer
from swift_rlvr.verifiers.tool_calls.reading import calls_in, has_call
from swift_rlvr.verifiers.tool_calls.rows import doubts, read_golds, read_tools
from swift_rlvr.verifiers.tool_calls.writing import in_hermes, with_calls

__all__ = [
    "MOST_CHARS",
    "BadCall",
    "Call",
    "Comparer",
    "GoldCall",
    "Tool",
    "calls_in",
    "doubts",
    "has_call",
    "in_hermes",
    "read_golds",
    "read_tools",
    "with_calls",
]
