"""Tests that chat templates are rendered as transformers does, and cannot take memory or time."""

import copy
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import psutil
import pytest
from transformers import AutoTokenizer

from engine.policy.models.conversations import conversation_ids
from engine.policy.starters import starter_directory
from engine.resources.model_files import template_limits
from engine.resources.model_files.templates import TemplateFailed, check_template, render
from tests.helpers.waiting import eventually

MIB = 1 << 20
USER = {"role": "user", "content": 'Add <1> & "2"\n  to it: ü 数 \U0001f642 {{ x }}'}
ANSWER = {"role": "assistant", "content": "  <think>so\n</think>\n\nreturn 3  "}
SYSTEM = {"role": "system", "content": "Be brief.\n"}
CONVERSATIONS = [
    [USER],
    [SYSTEM, USER],
    [USER, ANSWER],
    [SYSTEM, USER, ANSWER, USER],
]
TEMPLATES = {
    file.stem: file.read_text() for file in Path(__file__).with_name("templates").glob("*.jinja")
}


@cache
def tokenizer():
    return AutoTokenizer.from_pretrained(starter_directory("oak"))


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_template_is_rendered_as_transformers_does(name):
    """Each is in the style of a family of models, with the constructs of its templates."""
    rendered = 0
    for conversation in CONVERSATIONS:
        for prompt in (True, False):
            given = {"chat_template": TEMPLATES[name], "add_generation_prompt": prompt}
            tokens = tokenizer().special_tokens_map | {"bos_token": "<s>"}
            arguments = (given["chat_template"], conversation, tokens)
            try:
                expected = tokenizer().apply_chat_template(
                    conversation, tokenize=False, bos_token="<s>", **given
                )
            except Exception as error:
                with pytest.raises(TemplateFailed) as raised:
                    render(*arguments, add_generation_prompt=prompt)
                assert str(raised.value) == f"{type(error).__name__}: {error}"
            else:
                assert render(*arguments, add_generation_prompt=prompt) == expected
                rendered += 1
    check_template(TEMPLATES[name])
    assert rendered >= 4


@pytest.mark.parametrize("prompt", [True, False])
def test_ids_of_a_conversation_are_those_of_transformers(prompt):
    for conversation in CONVERSATIONS:
        expected = tokenizer().apply_chat_template(
            conversation, add_generation_prompt=prompt, return_dict=False
        )
        ids = conversation_ids(tokenizer(), conversation, add_generation_prompt=prompt)
        assert ids == expected and len(ids) > 10


def test_options_reach_the_template_as_they_reach_that_of_transformers():
    template = "{% if enable_thinking is defined and not enable_thinking %}<think>{% endif %}"
    template += "{{ effort | default('none') }} {{ messages[0].content }}"
    chat = [{"role": "user", "content": "x"}]
    thinking = copy.copy(tokenizer())
    thinking.chat_template = template
    for options in ({}, {"enable_thinking": False, "effort": "low", "unknown": 3}):
        expected = thinking.apply_chat_template(chat, return_dict=False, **options)
        assert conversation_ids(thinking, chat, options=options) == expected
    written = render(template, chat, {}, add_generation_prompt=True, options={"effort": "low"})
    assert written == "low x"


def test_a_long_conversation_is_rendered():
    text = "a\ud800" + "long statement ü" * 100_000
    messages = [{"role": "user", "content": text}]
    written = render("{{ messages[0].content }}!", messages, {}, add_generation_prompt=True)
    assert written == text + "!"


BIG = "{% set a = 'a' * 1000000 %}"
DOUBLED = (
    "{% set ns = namespace(x=START) %}{% for i in range(99) %}{% set ns.x = NEXT %}{% endfor %}"
)


def doubled(following, start="'ab'", end=""):
    return DOUBLED.replace("START", start).replace("NEXT", following) + end


MEMORY = "256 MiB of memory"
OF_MEMORY = {
    "the published one": ("{% set a = 'a' * 1000 %}{% set b = a * 1000 %}{{ b * 3160 }}", "`*`"),
    "a text times a number": ("{{ 'a' * 3000000000 }}", "`*` makes 3,000,000,000"),
    "a number times a text": ("{{ 3000000000 * 'a' }}", "`*` makes 3,000,000,000"),
    "a list": ("{{ ([1] * 3000000000)|length }}", "`*` makes 3,000,000,000"),
    "a tuple": ("{{ ((1, 2) * 3000000000)|length }}", "`*` makes 6,000,000,000"),
    "in a condition": ("{% if 'a' * 3000000000 %}{% endif %}", "`*` makes 3,000,000,000"),
    "a power": ("{{ 10 ** 1000000000 }}", "`**` makes a number of"),
    "powers": ("{{ 9 ** (9 ** 9) }}", "`**` makes a number of"),
    "squares": (doubled("ns.x * ns.x", "9"), "`*` makes a number of"),
    "sums": (doubled("ns.x + ns.x"), "`+` makes 1,"),
    "sums of lists": (doubled("ns.x + ns.x", "[1, 2]"), "`+` makes 1,"),
    "concatenation": (doubled("ns.x ~ ns.x"), MEMORY),
    "a width": ("{{ '%9999999999d' % 1 }}", "`%` formats a field of width 9999999999"),
    "a width of a named field": ("{{ '%(a)-999999999s' % {'a': 1} }}", "`%` formats a field"),
    "a width that is given": ("{{ '%*d' % (999999999, 1) }}", "`%` formats a field of width *"),
    "a precision": ("{{ '%.999999999f' % 1.0 }}", "`%` formats a field of width 999999999"),
    "formats of formats": (doubled("'%s%s' % (ns.x, ns.x)"), MEMORY),
    "format": ("{{ '{:>999999999}'.format(1) }}", MEMORY),
    "format with a given width": ("{{ '{:>{w}}'.format(1, w=999999999) }}", MEMORY),
    "format_map": ("{{ '{x:>999999999}'.format_map({'x': 1}) }}", MEMORY),
    "ljust": ("{{ 'a'.ljust(999999999) }}", MEMORY),
    "rjust": ("{{ 'a'.rjust(999999999) }}", MEMORY),
    "center": ("{{ 'a'.center(999999999) }}", MEMORY),
    "zfill": ("{{ 'a'.zfill(999999999) }}", MEMORY),
    "expandtabs": ("{{ '\t'.expandtabs(999999999) }}", MEMORY),
    "join": (BIG + "{{ a.join(a) }}", MEMORY),
    "replace": (BIG + "{{ a.replace('a', a) }}", MEMORY),
    "translate": (BIG + "{{ a.translate({97: a}) }}", MEMORY),
    "to_bytes": ("{{ (1).to_bytes(9999999999, 'big') }}", MEMORY),
    "the filter center": ("{{ 'a'|center(999999999) }}", MEMORY),
    "the filter indent": ("{{ 'a\nb'|indent(999999999) }}", MEMORY),
    "the filter format": ("{{ '%999999999d'|format(1) }}", MEMORY),
    "the filter join": (BIG + "{{ a|join(a) }}", MEMORY),
    "the filter replace": (BIG + "{{ a|replace('a', a) }}", MEMORY),
    "the filter batch": ("{{ [1]|batch(999999999, 'x')|list }}", MEMORY),
    "the filter wordwrap": (BIG + "{{ ('b' * 999)|wordwrap(1, true, a) }}", MEMORY),
    "the filter map": (BIG + "{{ a|map('replace', 'a', a)|list }}", MEMORY),
    "the filter tojson": ("{{ [1]|tojson(indent=999999999) }}", MEMORY),
    "the filter sum": (BIG + "{{ ([a] * 99)|map('list')|sum(start=[]) }}", MEMORY),
    "a block": (
        BIG + "{% set b %}{% for i in a %}{{ a }}{% endfor %}{% endset %}", MEMORY),
    "a macro's text": (
        BIG + "{% macro f() %}{% for i in a %}{{ a }}{% endfor %}{% endmacro %}{{ f() }}", MEMORY),
    "a range": ("{% for i in range(10 ** 12) %}{% endfor %}", "`range` counts more than 100,000"),
    "a range beyond numbers": ("{{ range(10 ** 30)|length }}", "`range` counts more than"),
    "ranges within ranges": (
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "`range`"),
    "its output": ("{% for i in range(99999) %}{{ 'a' * 999999 }}{% endfor %}", "its output has"),
    "a macro that calls itself": (
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "calls itself without end"),
    "a loop that calls itself": (
        "{% for x in [1] recursive %}{{ loop([1, 1]) }}{% endfor %}", "calls itself without end"),
    "a block that writes itself": (
        "{% block a %}{{ self.a() }}{{ self.a() }}{% endblock %}", "calls itself without end"),
    "brackets": ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "calls itself without end"),
    "its length": ("a" * 300_000, "has 300,000 characters, at most 262,144"),
    "only for a role": (
        "{% if messages[0].role == 'system' %}{{ 'a' * 3000000000 }}{% endif %}", "`*` makes"),
    "only in answers": (
        "{% if not add_generation_prompt %}{{ 'a' * 3000000000 }}{% endif %}", "`*` makes"),
}  # fmt: skip
OF_TIME = {
    "loops within loops": BIG + "{% for x in a %}{% for y in a %}{% endfor %}{% endfor %}",
    "a comparison": "{% set ns = namespace(x=1, y=1) %}{% for i in range(99) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    "a rounding": "{{ 1|round(-100000000) }}",
}


def checked_apart(templates, cpu_seconds):
    """The errors of templates, and the peak memory of the process that needs them and of those
    that render them, within so many seconds of processor time each."""
    script = Path(__file__).with_name("render_all.py")
    done = subprocess.run(
        [sys.executable, str(script), str(cpu_seconds)],
        input=json.dumps(templates),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[4])},
    )
    result = json.loads(done.stdout)
    return result["errors"], [1024 * peak for peak in result["peaks"]]


def test_no_template_takes_more_memory_than_its_limit():
    templates = {name: text for name, (text, _) in OF_MEMORY.items()}
    errors, (own, renderers) = checked_apart(templates, cpu_seconds=60)
    wrong = {
        name: errors[name] for name, (_, why) in OF_MEMORY.items() if why not in str(errors[name])
    }
    assert not wrong
    assert own < 64 * MIB, "nothing of it reaches the process that needs the text"
    assert renderers < template_limits.MEMORY_BYTES


@pytest.mark.large
def test_an_endless_template_is_ended():
    """By processor time, here of a second: a stricter limit of whoever starts it holds too."""
    errors, _ = checked_apart(OF_TIME, cpu_seconds=1)
    assert {name for name, error in errors.items() if "s of processor time" in str(error)} == set(
        OF_TIME
    )


def test_a_bad_template_leaves_others_and_forked_processes_alone():
    def text():
        return render("{{ messages[0].content }}", [USER], {}, add_generation_prompt=True)

    with pytest.raises(TemplateFailed, match=MEMORY):
        check_template("{{ 'a'.ljust(999999999) }}")
    assert text() == USER["content"]
    child = os.fork()
    if child == 0:
        os._exit(0 if text() == USER["content"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert text() == USER["content"]


def test_a_renderer_ends_with_the_process_that_started_it():
    """However that ends: here it is killed."""
    script = (
        "from engine.resources.model_files.templates import check_template\n"
        "check_template('a')\n"
        "import psutil, os, signal\n"
        "print(*[one.pid for one in psutil.Process().children()], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    (renderer,) = map(int, done.stdout.split())

    def is_gone():
        try:
            return psutil.Process(renderer).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    eventually(is_gone, "the renderer to end")


def test_errors_of_templates_are_reported_and_no_reason_to_refuse_a_model():
    refusing = "{{ raise_exception('no ' + messages[0].role) }}"
    for template, error in {
        refusing: "TemplateError: no user",
        "{% for": "TemplateSyntaxError: ",
        "{{ messages[0].content + none }}": "TypeError: ",
        "{{ ''.__class__.__mro__ }}": "SecurityError: ",
        "{% include '/etc/passwd' %}": "TypeError: no loader",
        "{{ messages.append(1) }}": "SecurityError: ",
    }.items():
        check_template(template)
        with pytest.raises(TemplateFailed, match=f"^{error}"):
            render(template, [USER], {}, add_generation_prompt=True)
