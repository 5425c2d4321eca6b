"""Command-line options, generated from `core.parameter_parsing`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import click

from otterwiki_semantic.core.parameter_parsing import Parameter, Request, parameters_of
from otterwiki_semantic.core.serialization import Schema

F = TypeVar("F", bound=Callable[..., Any])


def parameter_options(record: type[Request], *, without: Collection[str] = ()) -> Callable[[F], F]:
    """Return a decorator that adds an option for each parameter of a record, except those named in `without`.

    The command receives them under their names in the REST API.
    """

    def decorate(command: F) -> F:
        for each in reversed(parameters_of(record)):
            if each.name not in without:
                command = _option(each)(command)
        return command

    return decorate


def _option(parameter: Parameter) -> Callable[[F], F]:
    flag, default = f"--{parameter.name.replace('_', '-')}", parameter.schema.get("default")
    help_text, values = parameter.help.replace("`", ""), parameter.values
    if values["type"] == "number":
        help_text = f"{help_text.removesuffix('.')} ({values['minimum']:g} to {values['maximum']:g})."
    if values["type"] == "boolean":
        if parameter.default is None:
            return click.option(f"{flag}/--no-{flag[2:]}", default=None, help=help_text)
        return click.option(flag, is_flag=True, help=help_text)
    names = (flag, f"-{flag[2:]}") if len(parameter.name) == 1 else (flag,)
    return click.option(
        *names,
        parameter.name,
        type=_type(values),
        default=default,
        show_default=default is not None,
        multiple=parameter.repeats,
        help=help_text,
    )


def _type(values: Schema) -> click.ParamType[Any]:
    match values:
        case {"enum": choices}:
            return click.Choice(choices)
        case {"type": "integer"}:
            return click.IntRange(values["minimum"], values["maximum"])
        case {"type": "number"}:
            return click.FLOAT
    return click.STRING
