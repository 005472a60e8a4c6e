"""Whole images: from pixels to layered elements, and back."""

from pictolex.decompose.engine import Batch, Engine, Pictures, Progress, batches
from pictolex.decompose.layout import Layout
from pictolex.decompose.rendering import Rendered, Renderer
from pictolex.decompose.stage import Problem, Stage
from pictolex.decompose.strategy import Strategy

__all__ = ["Batch", "Engine", "Layout", "Pictures", "Problem", "Progress", "Rendered", "Renderer", "Stage", "Strategy", "batches"]
