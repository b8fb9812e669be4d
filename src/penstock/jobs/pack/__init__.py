"""Packs an environment: the packages of this Python and the flow's own modules as one archive that workers can run from, wherever it is unpacked."""
