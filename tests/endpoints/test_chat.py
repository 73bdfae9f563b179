"""Chat templates: rendered as the model's authors meant, in a sandbox, with a sentence for whatever goes wrong."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest

from tinyeval.endpoints.chat import chat_renderer
from tinyeval.errors import EndpointError

USER = [{"role": "user", "content": "你好 <b>\"quotes\" & 'more'</b>"}]
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def test_a_conversation_is_rendered_with_the_beginning_of_the_answer_and_nothing_is_escaped() -> None:
    prompt = chat_renderer(CHATML)([{"role": "system", "content": "Be brief."}, *USER])
    assert prompt == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n你好 <b>\"quotes\" & 'more'</b><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_special_tokens_reach_the_template() -> None:
    template = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
    assert chat_renderer(template, bos_token="<s>", eos_token="</s>")([{"role": "user", "content": "x"}]) == "<s>x</s>"
    assert chat_renderer(template)([{"role": "user", "content": "x"}]) == "x"


def test_lines_that_only_hold_a_statement_leave_no_space() -> None:
    template = "{% for m in messages %}\n    {% if true %}\n{{ m.content }}\n    {% endif %}\n{% endfor %}\nend"
    assert chat_renderer(template)([{"role": "user", "content": "x"}]) == "x\nend"


def test_loops_may_break_and_continue() -> None:
    template = (
        "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.content }}"
        "{% if m.content == 'b' %}{% break %}{% endif %}{% endfor %}"
    )
    talk = [("system", "s"), ("user", "a"), ("assistant", "b"), ("user", "c")]
    assert chat_renderer(template)([{"role": r, "content": c} for r, c in talk]) == "ab"


def test_what_a_template_asks_for_and_nobody_gives_is_nothing() -> None:
    template = "{% if tools %}tools{% endif %}{% if enable_thinking is defined %}think{% endif %}{{ documents }}ok"
    assert chat_renderer(template)(USER) == "ok"


def test_the_date_is_written_as_the_template_asks() -> None:
    assert re.fullmatch(r"\d\d \w{3} \d{4}", chat_renderer("{{ strftime_now('%d %b %Y') }}")(USER))


def test_a_conversation_that_the_template_refuses_is_told_in_its_words() -> None:
    template = "{% if messages[0].role != 'user' %}{{ raise_exception('must begin with user') }}{% endif %}fine"
    render = chat_renderer(template)
    assert render(USER) == "fine"
    with pytest.raises(EndpointError, match="chat template refuses the conversation: must begin with user"):
        render([{"role": "system", "content": "x"}])


@pytest.mark.parametrize(
    "template", ["{% for m in messages %}", "{{ messages[", "{% nonsense %}", "{{ x | no_such_filter }}"]
)
def test_a_malformed_template_is_told_before_anything_is_asked(template: str) -> None:
    with pytest.raises(EndpointError, match="the model's chat template is malformed: "):
        chat_renderer(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' + 1 }}",
        "{{ messages[0].content + messages[0] }}",
        "{{ messages[7].content }}",
        "{{ nobody.knows.this }}",
        "{{ 1 / 0 }}",
        "{{ 'abc'.index('z') }}",
        "{{ range(10 ** 9) | list }}",
        "{{ '%d' % 'x' }}",
        "{{ strftime_now(7) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ {}['a'] .b }}",
    ],
)
def test_a_template_that_breaks_while_it_is_rendered_is_told_in_a_sentence(template: str) -> None:
    with pytest.raises(EndpointError, match="chat template refuses the conversation"):
        chat_renderer(template)(USER)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''.__class__ }}",
        "{{ ''['__class__'].__base__ }}",
        "{{ ''|attr('__class__') }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__globals__['datetime'] }}",
        "{{ lipsum.__globals__['os'] }}",
        "{{ self.__init__.__globals__ }}",
        "{{ messages.__class__ }}",
        "{{ messages.append('x') }}",
        "{{ messages[0].update(role='system') }}",
    ],
)
def test_a_template_reaches_nothing_but_the_conversation_and_changes_nothing(template: str) -> None:
    messages: list[Any] = [dict(USER[0])]
    rendered = ""
    with contextlib.suppress(EndpointError):
        rendered = chat_renderer(template)(messages)
    assert rendered == "", "what the sandbox forbids is refused, or undefined: nothing"
    assert messages == USER
