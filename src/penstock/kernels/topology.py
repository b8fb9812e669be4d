"""The kernel of a bolt."""

from __future__ import annotations

from penstock.kernels.base import Kernel


class BoltKernel(Kernel):
    """A task of a bolt."""
