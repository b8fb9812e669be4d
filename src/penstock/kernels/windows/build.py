"""Finds the kernel of a window step."""

from __future__ import annotations

from penstock.graph.graph import Graph
from penstock.graph.nodes import Window
from penstock.graph.windows import CountWindow, TimeWindow
from penstock.kernels.base import Kernel
from penstock.kernels.windows.count import CountWindowKernel
from penstock.kernels.windows.panes import PanesKernel
from penstock.kernels.windows.sessions import SessionsKernel
from penstock.kernels.windows.window import WindowKernel


def window_kernel(node: Window, graph: Graph) -> Kernel:
    """By count, in columns where windows are emitted once, or a key at a time; the oracle takes all windows over time a key at a time."""
    if isinstance(node.spec, CountWindow):
        return CountWindowKernel(node, graph)
    if not (node.parts and node.once):
        return WindowKernel(node, graph)
    return PanesKernel(node, graph) if isinstance(node.spec, TimeWindow) else SessionsKernel(node, graph)
