"""A server with a certificate: clients check whom they speak to, nobody is answered in the clear, and cookies are for TLS alone."""

from __future__ import annotations

import datetime
import ipaddress
import json
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.client import Client
from penstock.errors import SetupError
from penstock.jobs.manager.manager import Manager
from penstock.server.serve import Listening, serving
from tests.jobs.manager.conftest import DRIVER, ending
from tests.server.conftest import Service


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine that nobody else has signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "penstock test")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    begun = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = begun.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    made = dated.add_extension(names, critical=False).sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    certificate, private = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(key.private_bytes(*form))
    return certificate, private


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = certified(folder)
    manager = Manager(folder / "data", DRIVER)
    with serving(manager, Listening(port=0, certificate=certificate, key=key)) as url, ending(manager):
        yield Service(url, manager), certificate


def test_a_client_speaks_to_a_server_whose_certificate_it_trusts_and_to_no_other(sealed: tuple[Service, Path]) -> None:
    service, certificate = sealed
    assert service.url.startswith("https://")
    assert Client(service.url, service.token("viewer"), certificate).who_am_i()["role"] == "viewer"
    named = service.url.replace("127.0.0.1", "localhost")
    for url, trusted, why in ((service.url, None, "self-signed"), (named, certificate, "mismatch")):
        with pytest.raises(SetupError, match=rf"does not hold: .*{why}.*SSL_CERT_FILE"):
            Client(url, service.token("viewer"), trusted).who_am_i()


def test_a_request_in_the_clear_gets_no_answer(sealed: tuple[Service, Path]) -> None:
    service, _ = sealed
    token, port = service.token("viewer"), urlsplit(service.url).port
    with socket.create_connection(("127.0.0.1", port or 0), 300) as connection:
        connection.sendall(
            f"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        assert b"HTTP" not in connection.recv(1_000)


def test_the_cookie_of_a_session_is_sent_by_tls_alone(sealed: tuple[Service, Path]) -> None:
    service, certificate = sealed
    content = json.dumps({"token": service.token("viewer")}).encode()
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{service.url}/api/v1/session", content, kind, method="POST")
    with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(certificate))) as answer:
        parts = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    assert {"secure", "httponly", "samesite=strict"} <= parts
