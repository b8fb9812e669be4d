"""Tells people of alerts: in the log, by a POST of JSON, by mail. It happens beside everything else, and what cannot be sent is logged."""

from __future__ import annotations

import json
import logging
import queue
import smtplib
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import urlsplit

from penstock.errors import OptionError
from penstock.jobs.manager.alerts.outside import Inside, check_host, opener
from penstock.jobs.manager.alerts.rule import ADDRESS, LOG, MAIL, AlertRule
from penstock.jobs.manager.alerts.watch import Notice

log = logging.getLogger("penstock")
TRIES, PAUSE, TIMEOUT = 3, 2.0, 10.0
MOST_WAITING = 1_000
Notices = tuple[Notice, ...]


@dataclass(frozen=True)
class MailServer:
    """Where mail goes out, and from whom."""

    host: str = "localhost"
    port: int = 25
    sender: str = "penstock@localhost"
    pause: float = PAUSE

    @classmethod
    def of(cls, address: str, sender: str) -> MailServer:
        """The mail server at `host:port`.

        >>> MailServer.of("mail.example.org:587", "jobs@example.org").port
        587
        """
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
            raise OptionError(f"expected a mail server as HOST:PORT, got {address!r}")
        if not ADDRESS.fullmatch(sender):
            raise OptionError(f"expected the mail address of a sender, got {sender!r}")
        return cls(host, int(port), sender)


@dataclass
class Notifier:
    """Sends notices one after the other, in a thread of its own that is there while there is something to send."""

    mail: MailServer = field(default_factory=MailServer)
    hosts: frozenset[str] = frozenset()
    """Who may be told although they are inside the network of this machine."""
    _queue: queue.Queue[tuple[str, Notices]] = field(default_factory=lambda: queue.Queue(MOST_WAITING))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def check(self, rule: AlertRule) -> None:
        """Refuses a rule that names somebody inside the network; raises OptionError."""
        for target in rule.to:
            if "://" in target:
                check_host(urlsplit(target).hostname or "", self.hosts)

    def tell(self, rules: Iterable[AlertRule], notices: Iterable[Notice]) -> None:
        """Has notices sent to those whom their rules name; what is to be mailed to somebody at once is one mail."""
        targets = {rule.name: rule.to for rule in rules}
        mails: dict[str, Notices] = {}
        for notice in notices:
            for target in targets.get(notice.rule, ()):
                if target == LOG:
                    log.warning("alert %s", notice)
                elif target.startswith(MAIL):
                    mails[target] = (*mails.get(target, ()), notice)
                else:
                    self._put(target, (notice,))
        for target, found in mails.items():
            self._put(target, found)

    def _put(self, target: str, notices: Notices) -> None:
        try:
            self._queue.put_nowait((target, notices))
        except queue.Full:
            log.error("alert %s: no notice was sent, %d wait already", _about(notices), MOST_WAITING)
            return
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="penstock-alerts", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                target, notices = self._queue.get(timeout=1.0)
            except queue.Empty:
                with self._lock:
                    if self._queue.empty():
                        self._thread = None
                        return
                continue
            self._send(target, notices)

    def _send(self, target: str, notices: Notices) -> None:
        for left in reversed(range(TRIES)):
            try:
                send(target, notices, self.mail, self.hosts)
            except (OSError, smtplib.SMTPException, ValueError) as error:
                if not left:
                    why = getattr(error, "reason", error)
                    text = str(why) if isinstance(why, Inside) else type(error).__name__
                    log.error("alert %s: a notice could not be sent (%s)", _about(notices), text)
                else:
                    time.sleep(self.mail.pause)
            else:
                return


def send(target: str, notices: Notices, mail: MailServer, hosts: Collection[str] = ()) -> None:
    """Tells one target; raises OSError or SMTPException when it cannot be."""
    if target.startswith(MAIL):
        _send_mail(target.removeprefix(MAIL), notices, mail)
    else:
        for notice in notices:
            _post(target, notice, hosts)


def _about(notices: Notices) -> str:
    return str(notices[0]) if len(notices) == 1 else f"{notices[0]}, and {len(notices) - 1} more"


def _post(url: str, notice: Notice, hosts: Collection[str]) -> None:
    body = json.dumps({**asdict(notice), "text": str(notice)}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    with opener(lambda host: host.lower() in hosts).open(request, timeout=TIMEOUT) as answer:
        answer.read(1_000)


def _send_mail(address: str, notices: Notices, mail: MailServer) -> None:
    made = EmailMessage()
    made["Subject"] = f"[penstock] {_subject(notices)}"
    made["From"], made["To"] = mail.sender, address
    made["Date"], made["Message-ID"] = formatdate(), make_msgid(domain=mail.sender.rpartition("@")[2])
    made.set_content("\n".join(map(str, notices)))
    with smtplib.SMTP(mail.host, mail.port, timeout=TIMEOUT) as server:
        server.send_message(made)


def _subject(notices: Notices) -> str:
    """What a mail is about: the alert, or how many."""
    if len(notices) == 1:
        return f"{notices[0].what}: {notices[0].rule} {notices[0].job}".strip()
    counts = Counter(notice.what for notice in notices)
    rules = list(dict.fromkeys(notice.rule for notice in notices))
    return f"{', '.join(f'{many} {what}' for what, many in counts.items())}: {', '.join(rules[:3])}{', ...' * (len(rules) > 3)}"
