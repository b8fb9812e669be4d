"""Topologies that were written for other systems, ported by changing an import."""
