"""The environment of processes that run what users wrote."""

from __future__ import annotations

import os

DATABASE = "PENSTOCK_SERVER_DATABASE"
"""The variable that has the address of the manager's database, perhaps with a password: it is the manager's alone."""
SIGN_IN_SECRET = "PENSTOCK_OIDC_SECRET"
"""The variable that has the secret by which the provider of sign-ins knows the manager; as an argument all users of the machine could read it."""
OWN = (DATABASE, SIGN_IN_SECRET)
"""What is the manager's alone."""


def job_environment() -> dict[str, str]:
    """What supervisors, drivers and the builders of plans are given; a bundle is imported by name, never by what lies around."""
    return {name: value for name, value in os.environ.items() if name not in OWN} | {"PYTHONSAFEPATH": "1"}
