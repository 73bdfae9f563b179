"""Chat templates, rendered as inference servers do: Jinja2 in its sandbox."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, cast

from tinyeval.errors import EndpointError


def chat_renderer(
    template: str, *, bos_token: str = "", eos_token: str = "", date: datetime.date | None = None
) -> Callable[[list[dict[str, str]]], str]:
    """A function from messages to the prompt, generation prompt included.

    Args:
        template: the model's.
        bos_token: what the template may write before the prompt.
        eos_token: what it may write after a turn.
        date: what a template that prints the date prints; today when None.

    Raises:
        EndpointError: the template is malformed; the function raises it when rendering fails.
    """
    import jinja2
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> str:
        raise jinja2.TemplateError(message)

    def now(form: str) -> str:
        return (date or datetime.date.today()).strftime(form)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    cast("dict[str, Any]", environment.globals).update(raise_exception=refuse, strftime_now=now)
    try:
        compiled = environment.from_string(template)
    except jinja2.TemplateError as e:
        raise EndpointError(f"the model's chat template is malformed: {e}.") from e

    def render(messages: list[dict[str, str]]) -> str:
        values: dict[str, Any] = {"messages": messages, "bos_token": bos_token, "eos_token": eos_token}
        try:
            return compiled.render(add_generation_prompt=True, **values)
        except (
            jinja2.TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
        ) as e:
            raise EndpointError(f"the model's chat template refuses the conversation: {e}.") from e

    return render
