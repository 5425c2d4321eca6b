"""Command-line options, generated from `core.parameters`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

from otterwiki_semantic.core.parameters import Choice, Flag, Integer, Number, Parameter, parameters_of

F = TypeVar("F", bound=Callable[..., Any])


def parameter_options(record: type, *, without: Collection[str] = ()) -> Callable[[F], F]:
    """Return a decorator that adds an option for each parameter of a record, except those named in `without`.

    The command receives them by their names in the REST API.
    """

    def decorate(command: F) -> F:
        for each in reversed(parameters_of(record)):
            if each.name not in without:
                command = _option(each)(command)
        return command

    return decorate


def _option(parameter: Parameter) -> Callable[[F], F]:
    flag = f"--{parameter.name.replace('_', '-')}"
    help_text = parameter.help.replace("`", "")
    if isinstance(parameter.type, Number):
        help_text = f"{help_text.removesuffix('.')} ({parameter.type.minimum:g} to {parameter.type.maximum:g})."
    if isinstance(parameter.type, Flag):
        if parameter.default is None:
            return click.option(f"{flag}/--no-{flag[2:]}", default=None, help=help_text)
        return click.option(flag, is_flag=True, help=help_text)
    names = (flag, f"-{flag[2:]}") if len(parameter.name) == 1 else (flag,)
    default = parameter.schema.get("default")
    return click.option(
        *names,
        parameter.name,
        type=_type(parameter),
        default=default,
        show_default=default is not None,
        multiple=parameter.type.is_list,
        help=help_text,
    )


def _type(parameter: Parameter) -> click.ParamType[Any]:
    type_ = parameter.type
    if isinstance(type_, Integer):
        return click.IntRange(type_.minimum, type_.maximum)
    if isinstance(type_, Number):
        return click.FLOAT
    if isinstance(type_, Choice):
        return click.Choice([choice.value for choice in type_.of])
    return click.STRING
