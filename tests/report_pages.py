"""Reading the page of `swift-rlvr report` without a browser."""

import json
import zlib
from base64 import b64decode
from html.parser import HTMLParser

HOSTILE = [
    "</script><script>window.broken = 1</script>",
    "<!-- <script> <img src=x onerror='window.broken = 1'>",
    "<svg/onload=window.broken=1>\u2028\u2029",
    "lone \ud800 surrogates \udfff, NUL \x00, bell \x07",
    "\u202eright to left\u202c and \u2066isolated\u2069",
    "]]> {{blocks}} ${x} &lt; &amp; </textarea></pre></template>",
    "a" * 1_000_000,
    "",
    "\U0001f600 " * 50 + "文字",
    "javascript:window.broken=1 <a href='javascript:window.broken=1'>x</a>",
]


class Document(HTMLParser):
    """The texts of a page by kind: blocks of data, scripts, styles, and what people see."""

    def __init__(self, text):
        super().__init__()
        self.blocks, self.scripts, self.styles, self.seen, self.policy = {}, [], [], [], ""
        self.tags, self._open = [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.tags.append((tag, known))
        if tag in ("script", "style"):
            self._open = known.get("id", tag)
        if known.get("http-equiv") == "Content-Security-Policy":
            self.policy = known["content"]

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._open = None

    def handle_data(self, data):
        if self._open is None:
            self.seen.append(data)
        elif self._open.startswith("block-"):
            self.blocks[self._open.removeprefix("block-")] = data
        else:
            (self.scripts if self._open == "script" else self.styles).append(data)

    def data(self, name):
        return json.loads(zlib.decompress(b64decode(self.blocks[name], validate=True)))

    def completions(self):
        """What the page knows about each completion, as one dictionary a completion."""
        page, columns = self.data("page"), self.data("columns")
        texts = [
            text for number in range(len(page["starts"])) for text in self.data(f"texts-{number}")
        ]
        explained = [
            each
            for number in range(len(page["starts"]))
            for each in self.data(f"explained-{number}")
        ]
        prompts = [
            each
            for number in range(len(page["promptStarts"]))
            for each in self.data(f"prompts-{number}")
        ]
        return [
            {
                "text": text,
                "step": columns["step"][i],
                "run": columns["run"][i],
                "question": prompts[columns["prompt"][i]][1],
                "prompt": prompts[columns["prompt"][i]][0],
                "gold": prompts[columns["prompt"][i]][2],
                "rewards": {name: values[i] for name, values in columns["rewards"].items()},
                "reasons": {name: page["names"][values[i]] for name, values in columns["reasons"].items()
                            if values[i] >= 0},
                "rules": {page["rules"][each[0]]["reward"]: each for each in explained[i]},
            }
            for i, text in enumerate(texts)
        ]  # fmt: skip
