"""Marks of chat templates in an answer: thoughts, wrappers of the answer, ends of a turn.

Sources: the chat templates of the models that write them: `<think>` (DeepSeek-R1, Qwen3 and most
others), `<thought>`, `<reasoning>`, `<seed:think>` (Seed-OSS), `<longcat_think>`, `◁think▷`
(Kimi), `[THINK]` (Magistral), `<|begin_of_thought|>` (Sky-T1), `<|START_THINKING|>` (Command A),
`<|inner_prefix|>` (Apertus), `<|channel|>analysis<|message|>` (gpt-oss), `<|channel>thought`
(Gemma 4), `<unused94>thought` (MedGemma), `<|im_start|>think` (a turn of its own), "Here is my
thought process:" (Granite 3), "Here are my reasoning steps:" (Apriel), `<details
type="reasoning">` (Open WebUI), `<start_working_out>` (Unsloth), `<ifm|think_start|>` (K2); and the
words that prompts in other languages ask for: `【思考】`, `<pensamiento>`.

They follow one rule: in brackets of any kind stands a word of `_THOUGHT`, perhaps after a name of
the model's (`ifm|`), with a word or a slash for the beginning or the end before or after it.

A mark that stands within quotes, as code or prose cites it, is no mark.
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from engine.problems.answers.code import parsed

_KIND = r"(?!begin|start|open|end|close|stop|finish|of)[a-z]{1,20}"
_PART = r"(?:process|steps?|trace|chain|content|block|section|mode|on|aloud|out[_ -]loud)"
_THOUGHT = (
    rf"(?:(?:{_KIND}[_-]|ant|re)?think(?:ing)?(?:[_ -]{_PART})?"
    rf"|(?:{_KIND}[_-]|(?:inner|chain[_ -]of)[_ -])?thoughts?(?:[_ -]process)?"
    rf"|reason(?:ing)?(?:[_ -]{_PART})?|analysis"
    r"|(?:self[_ -]?)?reflections?|self[_ -]?critique|reflexion|rationale|deliberations?|cot"
    r"|scratch[_-]?(?:pad|work)|working[_ -]out"
    r"|(?:inner|internal)[_ -](?:dialogue|reasoning)|(?:(?:inner|internal)[_ -])?monologue"
    r"|(?:深度)?(?:思考|思维|思維|推理|推論|思索)(?:过程|過程|链|鏈)?|思路|分析|反思|考え"
    r"|생각|사고(?:[ ]?과정)?|추론|мысли|размышлени[ея]|рассуждени[ея]|pensamientos?|razonamiento"
    r"|pensamentos?|raciocínio|pensées?|réflexions?|raisonnement|gedanken|überlegung(?:en)?)"
    r"(?:[_ -]and[_ -](?!answer|code|response|solution)[a-z]{1,20})?"
)
_LESS = r"(?:<{1,2}|[◁⟨＜‹«⟦〈《]|&lt;|\[(?=[|｜]))"
_MORE = r"(?:\\?(?:>{1,2}|[▷⟩＞›»⟧〉》]|&gt;)|(?<=[|｜])\])"
_BETWEEN = r"[_\-▁.:|｜ ]"
_OF_MODEL = r"(?:\w{1,40}[:|｜])?"
_SLASH = r"(?:\\?/|[／\\])"
_BEGIN, _FINISH = "(?:begin|start|open)", "(?:end|close|stop|finish)"
_HEADING = r"(?:(?:深度)?(?:思考|思维|思維|推理|推論)(?:过程|過程)?|思路|分析|反思|考え|생각)"
_ANSWER_HEADING = r"(?:最[终終])?(?:答案|回答|代码|代碼|程序|解答|コード|답변|코드)"
_WORD = r"(?:THINK(?:ING)?|THOUGHTS?|REASON(?:ING)?|ANALYSIS|SCRATCHPAD)"
_THOUGHT_MARK = re.compile(
    rf"""
    (?P<open>
        {_LESS}\s?[|｜]?{_OF_MODEL}(?:{_BEGIN}{_BETWEEN}?(?:of{_BETWEEN}?)?)?{_THOUGHT}
            (?:{_BETWEEN}{_BEGIN})?(?:\s[^<>\n]{{0,100}})?[|｜]?\s?{_MORE}
      | <\|inner_prefix\|> | <unused94>thought\b
      | <\|im_start\|>\s*think(?:ing)?(?=[ \t]*(?:\n|\Z))
      | <\|channel\|>\s*(?!final\b)\w(?:[^<\n]|<(?!\|(?:message|channel))){{0,200}}<\|message\|>
      | <\|channel\|>[ \t]*(?!final\b)\w[^<\n]{{0,40}}(?=\n)
      | <\|channel>\s*(?!final\b)\w+
      | here\ (?:is\ my\ thought\ process|are\ my\ reasoning\ steps):
    ) | (?P<close>
        {_LESS}\s?[|｜]?{_OF_MODEL}{_SLASH}\s?[|｜]?{_OF_MODEL}{_THOUGHT}\s?[|｜]?\s?{_MORE}
      | {_LESS}\s?[|｜]?{_OF_MODEL}{_FINISH}{_BETWEEN}?(?:of{_BETWEEN}?)?{_THOUGHT}[|｜]?\s?{_MORE}
      | {_LESS}\s?[|｜]?{_OF_MODEL}{_THOUGHT}{_BETWEEN}{_FINISH}[|｜]?\s?{_MORE}
      | [【［\[]\s?[/／]\s?{_HEADING}\s?[】］\]]
      | <\|inner_suffix\|> | <unused95> | <\|im_start\|>\s*answer[ \t]*\n
      | (?-i:\[(?:END_(?:OF_)?{_WORD}|{_WORD}_END)\])
      | <\|channel\|>\s*final\b[^<\n]{{0,100}}(?:<\|constrain\|>[^<\n]{{0,100}})?<\|message\|>
      | <\|channel\|>[ \t]*final[ \t]*(?=\n)
      | <channel\|> | <\|channel>\s*final\b
      | here\ is\ my\ response: | (?-i:\[BEGIN\ FINAL\ RESPONSE\])
    ) | (?P<square>(?-i:\[(?P<slash>/?)(?:(?:BEGIN|START)_(?:OF_)?)?{_WORD}(?:_START)?\]))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MANY = (
    r"plan(?:ning)?|brainstorm(?:ing)?|ponder(?:ing)?|draft|critique|workings?|internal|hidden"
    r"|step[_ -]by[_ -]step(?:[_ -]\w{1,20})?|exploration|contemplation|introspection|musings?"
    r"|reflect|deliberate|understanding|consideration|cogitation|derivation"
)
_SQUARE = r"think(?:ing)?|thoughts?|reason(?:ing)?|analysis|scratchpad|reflection"
_SUMMARY = (
    r"<summary>(?![^<\n]*(?:code|answer|solution))"
    r"[^<\n]{0,60}(?:think|thought|reason)[^<\n]{0,60}</summary>"
)
_PAIR = re.compile(
    rf"""
    (?P<open><(?P<first>{_MANY})> | \[(?P<bracket>{_SQUARE})\]
      | [【［\[]\s?{_HEADING}(?:开始|開始)?\s?[】］\]]
      | <(?P<block>details)(?:\ type=["']reasoning["'][^<>\n]{{0,100}}>
          | (?:\ open)?>\s{{0,9}}{_SUMMARY}))
    | (?P<close></(?P<last>{_MANY}|details)> | \[/(?P<end>{_SQUARE})\]
      | [【［\[]\s?(?:{_HEADING}(?:结束|結束)|{_ANSWER_HEADING})\s?[】］\]])
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Marks that count only where one of each stands: alone they may be anything."""
_HEADING_END = re.compile(
    rf"[【［\[]\s?(?:[/／]\s?{_HEADING}|{_HEADING}(?:结束|結束)|{_ANSWER_HEADING})\s?[】］\]]"
)
_BRACKET = (
    r"(?:<(?!<<)|[◁⟨＜‹«⟦〈《【［]|\[(?!\[)|&lt;)"
    r"(?=(?:<|&lt;)?\s?[|｜]?(?:\\?/|[／\\])?\s?[|｜]?[\w▁][^<]{%d})"
)
"""Where a mark may begin, so that the patterns of marks are tried there alone: a bracket and a
word's first character, which so many others follow that begin no mark."""
_BEGINNING = re.compile(_BRACKET % 1)
_BEGINNING_OF_THOUGHT = re.compile(_BRACKET % 2)
_HERE = "[Hh]ere (?:is|are) my "
_SENTENCE = re.compile(
    rf"{_BEGINNING_OF_THOUGHT.pattern}|(?<=\n)[ \t]*(?={_HERE})|\A\s*(?={_HERE})"
)
# What is left of gpt-oss's channels when its special tokens are not decoded.
_BARE_CHANNELS = re.compile(r"\A\s*analysis.*assistantfinal", re.DOTALL)
_OLLAMA = re.compile(
    r"\A\s*Thinking\.\.\.[ \t]*\n.*?^\.\.\.done thinking\.[ \t]*$", re.DOTALL | re.MULTILINE
)
"""How Ollama shows the thought of a model."""
_BARE_THOUGHT = re.compile(r"\A\s*analysis[A-Z][\w']* ")

_LONGEST_CITING = 20_000
"""Characters of a block whose marks may be cited."""
_LONGEST_MARK = _LINE = 200
"""Characters in which a mark, and what cites it, are looked for."""

_ANSWER = r"(?:final[_ -])?(?:answer|solution|response|code|program|python(?:[_ -]code)?)"
_WRAPPER = re.compile(
    rf"""
    (?P<open><(?:{_ANSWER}|final)(?:\s[^<>\n]{{0,100}})?> | <\|(?:begin|start)_(?:of_)?{_ANSWER}\|>
      | (?-i:\[(?:PYTHON|CODE|ANSWER|SOLUTION|PROGRAM)\] | (?<![^\n])\[BEGIN\](?=[ \t]*\n)))
  | (?P<close></(?:{_ANSWER}|final)> | <\|end_(?:of_)?{_ANSWER}\|>
      | (?-i:\[/(?:PYTHON|CODE|ANSWER|SOLUTION|PROGRAM)\]))
    """,
    re.VERBOSE | re.IGNORECASE,
)

_END = re.compile(
    r"<[|｜](?:im_)?(?:end(?!_header)|eo[a-z](?![a-z]))[\w▁]*[|｜]>"
    r"|<[|｜](?:return|call|user|im_start|im_sep|start)[|｜]>|\[\|endofturn\|\]"
    r"|<(?:end_of_turn|end_of_text|end_of_utterance|eo[dst]|start_of_turn|turn\|)>"
    r"|(?<![^\n'\"])\[DONE\](?=\s*(?:\Z|\n))"
    r"|(?:</s>|\[EOS\]|\[/INST\]|\[INST\])(?=\s*(?:\Z|\n|<|\[))"
    # A base model ends a file of its training data, and goes on with the next one.
    r"|<(?:file_sep|repo_?name|gh_stars|issue_start|commit_before|jupyter_start|jupyter_output"
    r"|empty_output)>|<[|｜](?:file_sep(?:arator)?|repo_name)[|｜]>",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"\A\s*(?:(?:<s>|<bos>|<\|begin_of_text\|>)\s*)?"
    r"(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|start\|>|<\|turn>)\s*"
    r"(?:assistant|model)[ \t]*(?:<\|end_header_id\|>|\n)?"
)
_SPECIAL = re.compile(
    r"<[|｜][\w▁]{1,40}[|｜]>|</?s>(?=[ \t]*$)|<(?:bos|pad|unk|jupyter_(?:code|text|script))>",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """Text of an answer outside its thoughts."""

    text: str
    unfinished: bool = False
    """Whether a thought never ends."""


def without_thoughts(answer: str) -> Spoken:
    """Returns the answer without its thoughts.

    A mark of an end without that of a beginning ends a thought that the prompt began: everything
    before it is thought. A thought that never ends takes the rest of the answer.
    """
    if bare := _BARE_CHANNELS.match(answer) or _OLLAMA.match(answer):
        return Spoken(answer[bare.end() :])
    if _BARE_THOUGHT.match(answer):
        return Spoken("", unfinished=True)
    spoken: list[str] = []
    position, thought = 0, False
    pair = ""
    fences = _Fences(answer)
    for mark in _thought_marks(answer):
        start = mark.start()
        if start < position or mark[0].endswith("/>") or _is_cited(answer, mark):
            continue
        if _opens(mark):
            if not thought and not fences.hold(position, mark):
                spoken.append(answer[position:start])
                position, thought, pair = mark.end(), True, _paired_word(mark)
        elif mark.re is _PAIR and (not thought or pair != _paired_word(mark)):
            continue
        elif thought:
            position, thought = mark.end(), False
        elif not _in_comment(answer, mark) and not fences.cite(mark):
            spoken.clear()
            position = mark.end()
    if thought and (final := _final_answer(answer, position)):
        return Spoken(final)
    if not thought:
        spoken.append(answer[position:])
    return Spoken("\n".join(spoken), thought)


def _final_answer(answer: str, start: int) -> str:
    """Returns the answer that ends a thought without its own mark: `<answer>` on a line of its own
    after `start`, whose end is the end of all; empty if there is none."""
    tail = _END.sub("", answer[-_LONGEST_MARK:]).rstrip()
    if not tail.endswith("</answer>"):
        return ""
    begin = answer.rfind("\n<answer>", start)
    return answer[begin:] if begin >= 0 else ""


def _paired_word(mark: re.Match[str]) -> str:
    """Returns the word of a mark of `_PAIR` with its bracket, of which a heading has nothing else;
    empty for other marks."""
    if mark.re is not _PAIR:
        return ""
    if word := mark["first"] or mark["block"] or mark["last"]:
        return f"<{word.lower()}"
    word = mark["bracket"] or mark["end"]
    return f"[{word.lower()}" if word else "【"


def is_thought_mark(token: str) -> bool:
    """Returns whether a token of a vocabulary begins or ends a thought."""
    return bool(_THOUGHT_MARK.fullmatch(token)) or token in ("<|channel|>", "<|message|>")


def opened_thought(prompt: str) -> str:
    """Returns the mark of a thought that a prompt begins at its end; empty if there is none."""
    tail = prompt[-_LONGEST_MARK:].rstrip()
    marks = [mark for mark in _thought_marks(tail) if mark.end() == len(tail)]
    return marks[-1][0] if marks and _opens(marks[-1]) else ""


def turn(text: str) -> str:
    """Returns the text up to the mark that ends the turn, without marks of its beginning."""
    text = _HEADER.sub("", text)
    begins = len(text) - len(text.lstrip())
    for mark in _marks(_END, text):
        if mark.start() > begins and not _is_cited(text, mark):
            text = text[: mark.start()]
            break
    return _own_turn(text, begins)


def _own_turn(text: str, begins: int) -> str:
    """Returns the text up to a further turn of a person that the model made up (`User:`), which
    one of the model follows."""
    if not _SPEAKER.search(text):
        return text
    fences = _Fences(text)
    person: int | None = None
    for speaker in _SPEAKER.finditer(text):
        if speaker.start() <= begins or fences.hold(0, speaker):
            continue
        if speaker["person"] or speaker["instruction"]:
            person = speaker.start() if person is None else person
        elif person is not None:
            return text[:person]
    return text


_SPEAKER = re.compile(
    r"^(?:(?:#{1,4}[ ]|\*\*)?(?:(?P<person>User|Human|USER|HUMAN)|Assistant|ASSISTANT|AI)"
    r"(?:\*\*:|:\*\*|:)|(?:#{2,4}|@@) (?:(?P<instruction>Instruction)|Response):?)(?=[ \t\n]|\Z)",
    re.MULTILINE,
)


def without_marks(text: str) -> str:
    """Returns the text with a line break for each wrapper and special token."""
    for pattern in (_WRAPPER, _END, _SPECIAL):
        pieces: list[str] = []
        position = 0
        for mark in _marks(pattern, text):
            if not _is_cited(text, mark):
                pieces += text[position : mark.start()], "\n"
                position = mark.end()
        text = "".join((*pieces, text[position:]))
    return text


def wrapped(text: str) -> str:
    """Returns what the last wrapper of an answer (`<answer>`, `[PYTHON]`) holds; empty without."""
    start: int | None = None
    inside = ""
    for mark in _marks(_WRAPPER, text):
        if _is_cited(text, mark):
            continue
        if mark["close"]:
            inside = text[start : mark.start()] if start is not None else inside
            start = None
        elif start is None:
            start = mark.end()
    return inside if start is None else text[start:]


_ELEMENT_END = re.compile(
    r"(?:</|\[/|\{/|<!--\s?(?:/|end[ _-]))\s?[^\W\d][\w:-]{0,40}\s?(?:-->|[>\]}])[ \t]*$",
    re.MULTILINE,
)


def after_elements(text: str) -> str:
    """Returns what follows the last element of whatever name, for it may be a thought of a further
    spelling (`<notes>`); empty without one, or if nothing follows."""
    last = None
    for mark in _ELEMENT_END.finditer(text):
        last = mark
    if last is None or _is_cited(text, last) or _Fences(text).hold(0, last):
        return ""
    return text[last.end() :].lstrip("\n")


def _marks(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    position = 0
    for beginning in _BEGINNING.finditer(text):
        if beginning.start() >= position and (mark := pattern.match(text, beginning.start())):
            position = mark.end()
            yield mark


def _thought_marks(text: str) -> Iterator[re.Match[str]]:
    ends: dict[str, int] = {}
    brackets = _BEGINNING_OF_THOUGHT
    beginnings = _SENTENCE if re.search(_HERE, text) else brackets
    for beginning in beginnings.finditer(text):
        is_sentence = beginnings is _SENTENCE and not brackets.match(text, beginning.start())
        start = beginning.end() if is_sentence else beginning.start()
        mark = _THOUGHT_MARK.match(text, start)
        if mark is None and (pair := _PAIR.match(text, start)):
            mark = pair if pair["close"] or _is_closed(text, pair, ends) else None
        if mark:
            yield mark


def _is_closed(text: str, mark: re.Match[str], ends: dict[str, int]) -> bool:
    """Returns whether the closing mark of a pair stands later in the text; `ends` keeps where the
    last one of each word stands."""
    word = _paired_word(mark)
    if word not in ends and word == "【":
        ends[word] = max((end.start() for end in _HEADING_END.finditer(text)), default=-1)
    elif word not in ends:
        end = f"{word[0]}/{word[1:]}{'>' if word[0] == '<' else ']'}"
        ends[word] = text.lower().rfind(end)
    return ends[word] > mark.start()


def _opens(mark: re.Match[str]) -> bool:
    if mark["open"]:
        return True
    return mark.re is not _PAIR and bool(mark["square"]) and not mark["slash"]


def _is_cited(text: str, mark: re.Match[str]) -> bool:
    """Returns whether code or prose cites the mark: it stands within quotes on its line."""
    before, after = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    if after == "`":
        return not text.startswith("```", mark.end())
    if after and after in "'\"\\":
        return True
    if before and before in "'\"`":
        return before in _rest_of_line(text, mark)
    return before == "\\" and not mark[0].endswith("\\>")


def _in_comment(text: str, mark: re.Match[str]) -> bool:
    line = text[max(0, mark.start() - _LINE) : mark.start()].rpartition("\n")[2]
    return "# " in line and bool(_rest_of_line(text, mark).strip())


def _rest_of_line(text: str, mark: re.Match[str]) -> str:
    return text[mark.end() : mark.end() + _LINE].partition("\n")[0]


class _Fences:
    """Where the fences of a text stand, found once however many marks it has."""

    def __init__(self, text: str):
        self._text, self._marked = text, "```" in text or "~~~" in text
        self._opening = -1, False
        self._fences = fences = list(_FENCE.finditer(text)) if self._marked else []
        self._cited = -1, False
        self._starts = [fence.start(1) for fence in fences]
        self._last_close = max((f.start() for f in fences if not f["info"]), default=-1)

    def hold(self, start: int, mark: re.Match[str]) -> bool:
        """Returns whether a mark after `start` stands in a fenced block, which is closed later."""
        if not self._marked:
            return False
        before = bisect_left(self._starts, mark.start()) - bisect_left(self._starts, start)
        return (before + self._opens(start)) % 2 == 1 and self._last_close >= mark.end()

    def cite(self, mark: re.Match[str]) -> bool:
        """Returns whether a mark stands within a fenced block of Python, as in a docstring."""
        after = bisect_left(self._starts, mark.start())
        if after == 0 or after == len(self._fences) or self._fences[after]["info"]:
            return False
        if self._cited[0] != after:
            block = self._text[self._fences[after - 1].end() : self._starts[after]]
            code = block.partition("\n")[2].rpartition("\n")[0]
            is_code = len(code) <= _LONGEST_CITING and parsed(textwrap.dedent(code)) is not None
            self._cited = after, is_code
        return self._cited[1]

    def _opens(self, start: int) -> bool:
        """Returns whether a fence stands there, within a line."""
        if self._opening[0] != start:
            fence = _TICKS.match(self._text, start)
            inside = start > 0 and self._text[start - 1] != "\n"
            self._opening = start, bool(fence) and inside
        return self._opening[1]


_TICKS = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_FENCE = re.compile(rf"^{_TICKS.pattern}[ \t]*(?P<info>\S?)", re.MULTILINE)
