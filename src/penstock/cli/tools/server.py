"""`penstock server`: the manager of jobs, and its API."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from penstock.cli.jobs.needs import mebibytes
from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.errors import SetupError
from penstock.jobs.manager.access.accounts import Accounts
from penstock.jobs.manager.alerts.notify import MailServer
from penstock.jobs.manager.manager import Manager, default_root
from penstock.jobs.manager.processes.environment import DATABASE
from penstock.jobs.manager.store.postgres_database import PostgresDatabase

Data = Annotated[
    Path | None,
    option(metavar="DIR", help="Where jobs are kept.", show_default="~/.local/share/penstock/jobs"),
]


def server(  # noqa: PLR0913 - options of a command
    data: Data = None,
    database: Annotated[
        str,
        option(
            metavar="URL",
            help=f"A PostgreSQL that keeps what is wanted, so that two servers can share --data; {DATABASE} may have a password in it.",
            show_default="a file in --data",
        ),
    ] = "",
    host: Annotated[str, option(metavar="HOST", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[
        int, option(metavar="PORT", min=0, max=65535, help="The port; 0 takes a free one and prints it.")
    ] = 8880,
    name: Annotated[list[str] | None, option(metavar="NAME", help="A host name by which clients reach it.")] = None,
    cert: Annotated[Path | None, option(metavar="FILE", help="The certificate, for TLS.")] = None,
    key: Annotated[Path | None, option(metavar="FILE", help="The key of the certificate.")] = None,
    plain_http: Annotated[
        bool, option("--plain-http", help="No TLS although others can reach it: a proxy before it speaks TLS.")
    ] = False,
    smtp: Annotated[str, option(metavar="HOST:PORT", help="The mail server that takes alerts.")] = "localhost:25",
    mail_from: Annotated[str, option(metavar="ADDRESS", help="Who mails alerts.")] = "penstock@localhost",
    alert_host: Annotated[
        list[str] | None,
        option(metavar="HOST", help="A host on loopback or in a private network that alerts may be sent to by HTTP."),
    ] = None,
    log: Annotated[
        Path | None,
        option("--log", metavar="DIR", help="A log to serve: records in and out by HTTP.", show_default="none"),
    ] = None,
    oidc: Annotated[
        str, option(metavar="URL", help="The OpenID Connect provider that signs browsers in.", show_default=False)
    ] = "",
    oidc_client: Annotated[str, option(metavar="ID", help="What this server is there.", show_default=False)] = "",
    oidc_secret_file: Annotated[
        Path | None, option(metavar="FILE", help="The secret of that client; else PENSTOCK_OIDC_SECRET has it.")
    ] = None,
    oidc_role: Annotated[
        list[str] | None,
        option(metavar="CLAIM=VALUE:ROLE", help="Who gets which role, the first that fits; *:ROLE is for all."),
    ] = None,
    oidc_owner: Annotated[str, option(metavar="CLAIM", help="The claim that names a user.")] = "email",
    oidc_redirect: Annotated[
        str, option(metavar="URL", help="Where the provider sends browsers back to.", show_default=False)
    ] = "",
    run_as: Annotated[
        list[str] | None,
        option(metavar="OWNER=USER", help="The user of the machine whose rights the jobs of an owner have."),
    ] = None,
    job_disk: Annotated[
        str, option(metavar="SIZE", help="How much of the disk a job may take, such as 20g.", show_default="no limit")
    ] = "",
    keep_free: Annotated[
        str, option(metavar="SIZE", help="When less of the disk is left, the job that fills it is stopped.")
    ] = "1g",
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Keep jobs running: what is submitted runs until it is stopped, also when this server is not there."""
    with handled(debug=debug, runs=False):
        serving = serving_module()
        mail = MailServer.of(smtp, mail_from)
        secret = serving.read_secret(oidc_secret_file, os.environ)
        claims = (serving.role_rules(oidc_role or ()), oidc_owner, oidc_redirect)
        provider = serving.OidcSettings(oidc, oidc_client, *claims, secret) if oidc else None
        names, hosts = tuple(name or ()), tuple(alert_host or ())
        disk = serving.DiskLimits(size_of("--job-disk", job_disk), size_of("--keep-free", keep_free) or 0)
        where = serving.Listening(host, port, names, cert, key, plain_http, mail, log, provider, hosts, disk)
        accounts = Accounts.of(run_as or ())
        manager = Manager(data or default_root(), shared=shared_database(database), accounts=accounts)
        serving.serve(manager, where, lambda text: typer.echo(text, err=True))


def size_of(flag: str, text: str) -> int | None:
    """A size in bytes; None for no text.

    >>> size_of("--job-disk", "20g") == 20 << 30
    True
    """
    found = mebibytes(flag, text)
    return None if found is None else found << 20


def shared_database(url: str) -> PostgresDatabase | None:
    """The database at a URL, None for a file; in the environment the URL may have a password, as an argument it may not."""
    return PostgresDatabase.of(url, is_seen=url != os.environ.get(DATABASE)) if url else None


def serving_module() -> ModuleType:
    """What serves, which needs packages of its own."""
    try:
        from penstock.server import serve
    except ModuleNotFoundError as error:
        raise SetupError(f"the server needs {error.name}: pip install 'penstock[server]'") from None
    return serve
