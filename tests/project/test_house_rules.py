"""Rules that every module keeps."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import pictolex
from pictolex import settings

PACKAGE = Path(pictolex.__file__).parent
ROOT = Path(__file__).parents[2]
MODULES = sorted(PACKAGE.rglob("*.py"))
SETTING_CLASSES = {name for name, value in vars(settings).items() if isinstance(value, type) and issubclass(value, settings.Setting)}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def outside_factories(tree: ast.AST) -> list[ast.AST]:
    """All nodes but those inside functions named `create`, the factories that turn a setting into an object."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.FunctionDef) and child.name.startswith("create")):
            found += [child, *outside_factories(child)]
    return found


def _is_kind(node: ast.AST) -> bool:
    """`something.kind`, but not the kind of a NumPy type."""
    return isinstance(node, ast.Attribute) and node.attr == "kind" and not ast.unparse(node.value).endswith("dtype")


def dispatches(node: ast.AST) -> bool:
    """Whether a node compares a `kind` with a text, matches on it, or asks whether something is a setting of some class."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(_is_kind(side) for side in sides) and any(isinstance(side, ast.Constant | ast.Tuple | ast.Set) for side in sides)
    if isinstance(node, ast.Match):
        return _is_kind(node.subject)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        names = {leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)}
        names |= {leaf.attr for leaf in ast.walk(node) if isinstance(leaf, ast.Attribute)}
        return bool(names & SETTING_CLASSES)
    return False


# In model/ and sources/, `kind` is a word of the data (of a background, of an event), not of a setting.
@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p).split("/")[0] not in ("model", "sources")], ids=name_of)
def test_only_factories_look_at_the_kind_of_a_setting(path: Path) -> None:
    bad = [node.lineno for node in outside_factories(ast.parse(path.read_text())) if dispatches(node)]
    assert not bad, f"{name_of(path)} decides by kind at lines {bad}"


def test_the_rule_about_kinds_can_fail() -> None:
    for line in ("if s.strategy.kind == 'rounds': pass", "if isinstance(s, Rounds): pass", "match s.kind:\n    case 'a': pass"):
        assert any(dispatches(node) for node in outside_factories(ast.parse(line)))
    assert not any(dispatches(node) for node in outside_factories(ast.parse("def create(s):\n    return s.kind == 'a'")))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_says_what_it_is_and_stays_readable(path: Path) -> None:
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "no docstring at the top"
    assert len(text.splitlines()) <= 600
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


def test_pins_satisfy_the_ranges() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#"))
    pinned = {name.lower().replace("_", "-"): version for name, version in pins.items()}
    for text in (*project["dependencies"], *(one for one in extras["dev"] if not one.startswith("pictolex"))):
        need = Requirement(text)
        assert need.specifier.contains(pinned[need.name.lower()]), text
    assert not [version for version in pinned.values() if "+" in version], "a local version such as +cpu cannot be installed elsewhere"


def test_all_is_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras["all"] == [f"pictolex[{','.join(name for name in extras if name not in ('all', 'dev'))}]"]


def test_versions_agree() -> None:
    assert f"\nversion: {pictolex.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {pictolex.__version__}" in (ROOT / "CHANGELOG.md").read_text()
