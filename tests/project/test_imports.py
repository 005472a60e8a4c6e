"""Imports flow downward only, and the core stays small."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pictolex

PACKAGE = Path(pictolex.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

# What each room may import; whatever is not named here is above.
BASE = {"errors", "settings"}
LEARNING = BASE | {"presets", "model", "sources", "formation", "search", "decompose", "learn"}
MAY_IMPORT = {
    "errors": set(),
    "settings": {"errors"},
    "presets": BASE,
    "model": BASE,
    "sources": BASE | {"model"},
    "formation": BASE | {"model"},
    "metrics": BASE | {"model", "formation"},
    "search": BASE | {"model", "formation"},
    "decompose": BASE | {"model", "formation", "search", "sources"},
    "learn": LEARNING,
    "use": LEARNING | {"metrics"},
    "export": LEARNING | {"metrics"},
    "pictures": LEARNING | {"metrics"},
    "api": LEARNING,
    "experiments": LEARNING | {"metrics", "pictures", "export", "use", "api"},
    "cli": LEARNING | {"metrics", "pictures", "export", "use", "api", "experiments"},
}
CORE = ("settings", "errors", "model", "formation", "search", "decompose", "learn")
CORE_PACKAGES = {"numpy", "torch", "pydantic", "pydantic_core", "safetensors", "pictolex"}
BLIND = ("search", "decompose", "learn")
TRUTH = ("pictolex.sources.truth", "pictolex.metrics")


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path, tree: ast.AST) -> Iterator[str]:
    """Full names of all that is imported under a tree, relative imports resolved; `from a import b` gives a and a.b."""
    package = ("pictolex", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def at_import_time(tree: ast.Module) -> ast.Module:
    """The statements that run when the module is imported: no function bodies, no blocks for type checkers."""

    class Strip(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
            return None

        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
            return None

        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if "TYPE_CHECKING" in ast.dump(node.test) else self.generic_visit(node)

    return Strip().visit(tree)


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) not in ("__init__", "__main__")], ids=name_of)
def test_imports_flow_downward(path: Path) -> None:
    allowed = MAY_IMPORT[room(path)] | {room(path)}
    for name in imported(path, ast.parse(path.read_text())):
        if not name.startswith("pictolex.") or name == "pictolex.__version__":
            continue
        assert name.split(".")[1] in allowed, f"{name_of(path)} imports {name}, which is not below it"


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) in BLIND], ids=name_of)
def test_learning_never_sees_the_truth(path: Path) -> None:
    seen = [name for name in imported(path, ast.parse(path.read_text())) if name.startswith(TRUTH)]
    assert not seen


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) in CORE], ids=name_of)
def test_the_core_imports_only_its_packages(path: Path) -> None:
    for name in imported(path, at_import_time(ast.parse(path.read_text()))):
        top = name.split(".")[0]
        assert top in CORE_PACKAGES or top in sys.stdlib_module_names, f"{name_of(path)} imports {name} when it is imported"
        assert not (top == "torch" and room(path) in ("model", "settings", "errors")), f"{name_of(path)} imports torch"


@pytest.mark.parametrize("packages", ["model", "formation search decompose learn"])
def test_the_core_works_without_the_other_packages(packages: str) -> None:
    code = (
        "import importlib, sys\n"
        "for name in ('pyarrow', 'PIL', 'scipy', 'rich', 'cyclopts', 'tomli_w', 'jaxtyping', 'matplotlib', 'sklearn'):\n"
        "    sys.modules[name] = None\n"
        f"for name in {packages.split()!r}:\n"
        "    importlib.import_module('pictolex.' + name)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, pictolex; print(sorted({m.split('.')[0] for m in sys.modules} & {'torch', 'numpy', 'pydantic', 'PIL', 'pyarrow'}))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.parametrize(
    "lines",
    [
        "import pictolex; assert callable(pictolex.learn) and callable(pictolex.decompose)",
        "import pictolex.learn; assert callable(pictolex.learn)",
        "from pictolex import learn; import pictolex.learn.run as r; assert callable(learn) and r.Run",
        "import pictolex.decompose; from pictolex import decompose, load, Dictionary, Decomposition; assert callable(decompose)",
    ],
)
def test_rooms_named_after_what_they_do_can_be_called(lines: str) -> None:
    subprocess.run([sys.executable, "-c", lines], check=True, timeout=120)
