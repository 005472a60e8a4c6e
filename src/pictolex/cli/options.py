"""Every setting as an option of the command line: `--placement.rotations 4`, `--strategy.kind rounds`.

The options are made from `Settings` itself, so a new setting is an option without a line here. What was typed is kept as text
and laid over a preset's or a run's settings; validation is pydantic's, told in one line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cyclopts import Group, Parameter
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pictolex.errors import SettingError
from pictolex.settings import Settings

Changes = Mapping[str, str | bool | int | float]
GROUP = Group("Settings", help="Over those of the preset or the run. What goes by kind has the settings of that kind only.", sort_key=10)


def _variants(annotation: Any) -> tuple[type[BaseModel], ...]:
    """The models a section may be: one, or those of a union by kind; none for a plain value."""
    if get_origin(annotation) is Annotated:
        return _variants(get_args(annotation)[0])
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return tuple(member for member in members if isinstance(member, type) and issubclass(member, BaseModel))


def setting_fields() -> Iterator[tuple[str, list[FieldInfo]]]:
    """Dotted name and field of every setting; a name that several kinds share comes once, with all of their fields."""
    for name, field_info in Settings.model_fields.items():
        variants = _variants(field_info.annotation)
        if not variants:
            yield name, [field_info]
            continue
        members = list(dict.fromkeys(member for variant in variants for member in variant.model_fields))
        for member in members:
            yield f"{name}.{member}", [variant.model_fields[member] for variant in variants if member in variant.model_fields]


def _choices(annotation: Any) -> list[str]:
    return [str(value) for value in get_args(annotation)] if get_origin(annotation) is Literal else []


def _help(name: str, fields: list[FieldInfo]) -> str:
    choices = list(dict.fromkeys(choice for info in fields for choice in _choices(info.annotation)))
    parts = [next((info.description for info in fields if info.description), "")]
    if choices:
        parts.append(f"one of {', '.join(choices)}")
    if not name.endswith(".kind") and fields[0].annotation is not bool:
        default = fields[0].default
        shown = ",".join(str(value) for value in default) if isinstance(default, tuple) else default
        parts.append(f"default {shown}" if shown is not None else "default: no limit")
    return "; ".join(part for part in parts if part)


def _option(name: str, fields: list[FieldInfo]) -> inspect.Parameter:
    kind: Any = bool if fields[0].annotation is bool else str
    section, _, leaf = name.rpartition(".")
    shown = name.replace("_", "-")
    negative = [f"--{section}.no-{leaf.replace('_', '-')}" if section else f"--no-{leaf}"] if kind is bool else []
    option = Parameter(name=f"--{shown}", help=_help(name, fields), group=GROUP, negative=negative, show_default=False)
    return inspect.Parameter(_key(name), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option])


def _key(name: str) -> str:
    return name.replace(".", "__")


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each setting. It gets what was typed as `changes`: dotted name -> text, or a flag's truth."""
    own = inspect.signature(command, eval_str=True)
    options = {name: _option(name, fields) for name, fields in setting_fields()}
    kept = [parameter for parameter in own.parameters.values() if parameter.name != "changes"]

    def wrapper(*positional: Any, **keywords: Any) -> None:
        typed = {name: keywords.pop(_key(name), None) for name in options}
        command(*positional, changes={name: value for name, value in typed.items() if value is not None}, **keywords)

    wrapper.__name__, wrapper.__doc__, wrapper.__module__ = command.__name__, command.__doc__, command.__module__
    wrapper.__annotations__ = {}
    wrapper.__signature__ = own.replace(parameters=[*kept, *options.values()])  # type: ignore[attr-defined]
    return wrapper


def overlay(base: Settings, changes: Changes) -> Settings:
    """The settings `base` with dotted `changes` over them. Another kind of a section starts from that kind's defaults."""
    values: dict[str, Any] = base.model_dump()
    sections: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        section, _, leaf = name.rpartition(".")
        if section:
            sections.setdefault(section, {})[leaf] = _parsed(name, value)
        else:
            values[leaf] = _parsed(name, value)
    for section, members in sections.items():
        stays = members.get("kind", values[section].get("kind")) == values[section].get("kind")
        values[section] = {**values[section], **members} if stays else members
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingError(explain(error)) from None


def _parsed(name: str, value: Any) -> Any:
    """Lists are typed with commas; `none` stands for no limit."""
    infos = dict(setting_fields())[name]
    if isinstance(value, str):
        if any(get_origin(info.annotation) is tuple for info in infos):
            return [part.strip() for part in value.split(",")]
        if value.lower() == "none" and any(type(None) in get_args(info.annotation) for info in infos):
            return None
    return value


def explain(error: ValidationError) -> str:
    """A failed validation as one line that names the options."""
    told: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        name, text = _explain_one(dict(detail))
        told.setdefault(name, text)
    return "; ".join(f"{name} {text}" for name, text in told.items())


def _explain_one(detail: dict[str, Any]) -> tuple[str, str]:
    """The option that is wrong, and what is wrong with it."""
    place = [str(part) for part in detail["loc"]]
    section = Settings.model_fields.get(place[0])
    kind = ""
    if section is not None and len(_variants(section.annotation)) > 1 and len(place) > 1:
        kind = place.pop(1)
    # Positions in a list say nothing to who typed one option.
    name = "--" + ".".join(part for part in place if not part.isdigit()).replace("_", "-")
    if detail["type"] == "union_tag_invalid":
        return f"{name}.kind", f"must be one of {detail['ctx']['expected_tags']}; got {detail['ctx']['tag']!r}"
    if detail["type"] == "extra_forbidden" and kind:
        owners = " or ".join(f"--{place[0]}.kind {owner}" for owner in _owners(place))
        return name, f"does not go with --{place[0]}.kind {kind}: " + (f"it needs {owners}" if owners else "there is no such setting")
    if detail["type"] == "extra_forbidden":
        return name, "is not a setting"
    message = str(detail["msg"]).replace("Input should", "must")
    return name, f"{message}; got {detail['input']!r}"


def _owners(place: list[str]) -> list[str]:
    section = Settings.model_fields.get(place[0])
    if section is None or len(place) < 2:
        return []
    variants = _variants(section.annotation)
    return [str(variant.model_fields["kind"].default) for variant in variants if place[1] in variant.model_fields and len(variants) > 1]
