"""Two servers of jobs on two machines, as far as a kernel can pretend: each has processes, a network and a host name of its own, and sees the directory of jobs and the database alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from penstock.client import ServerError
from penstock.errors import PenstockError
from penstock.jobs.manager.processes.directory import DRIVER, SUPERVISOR, JobDirectory
from tests.postgres.proxy import Proxy
from tests.postgres.test_two_managers import Peer, started, starts
from tests.waiting import wait_until

pytestmark = (
    pytest.mark.slow
)  # the network of the machine changes, which browsers that run beside it take for a failure


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=300)


@dataclass(frozen=True)
class Machine:
    """A network namespace with one cable; what is started in it gets processes of its own, which end together."""

    name: str
    number: int

    @property
    def host(self) -> str:
        return f"10.213.{self.number}.2"

    @property
    def gateway(self) -> str:
        """Its only neighbour: the machine of the database."""
        return f"10.213.{self.number}.1"

    @property
    def cable(self) -> str:
        return f"pt{os.getpid() % 100_000}-{self.number}"

    @property
    def within(self) -> list[str]:
        alone = ["unshare", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child=KILL"]
        return ["ip", "netns", "exec", self.name, *alone, "sh", "-c", f'hostname {self.name} && exec "$@"', "sh"]

    @contextmanager
    def connected(self) -> Iterator[None]:
        inside = ("ip", "-n", self.name)
        run("ip", "netns", "add", self.name)
        try:
            run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
            for address, device, at in ((self.gateway, self.cable, ("ip",)), (self.host, "eth0", inside)):
                run(*at, "addr", "add", f"{address}/30", "dev", device)
                run(*at, "link", "set", device, "up")
            run(*inside, "link", "set", "lo", "up")
            yield
        finally:
            run("ip", "netns", "del", self.name)  # its end of the cable goes, and the other with it

    def plug(self, state: str) -> None:
        """`down` pulls the cable, `up` puts it back."""
        run("ip", "link", "set", self.cable, state)


@pytest.fixture
def machines() -> Iterator[tuple[Machine, Machine]]:
    made = (
        Machine(f"pt{os.getpid()}a", 2 * (os.getpid() % 120)),
        Machine(f"pt{os.getpid()}b", 2 * (os.getpid() % 120) + 1),
    )
    with ExitStack() as stack:
        try:
            for machine in made:
                stack.enter_context(machine.connected())
            run(*made[0].within, "true")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no namespaces for this user: {error}")
        yield made


@contextmanager
def serving(machines: tuple[Machine, Machine], root: Path, url: str) -> Iterator[list[Peer]]:
    """A server on each machine, which reaches the database by its own cable."""
    port = urlsplit(url).port
    assert port is not None
    with ExitStack() as stack:
        made = []
        for machine in machines:
            proxy = stack.enter_context(Proxy(port, host=machine.gateway))
            own = url.replace(f"127.0.0.1:{port}", f"{machine.gateway}:{proxy.address[1]}")
            made.append(started(root, own, machine.name, machine.within, machine.host))
            stack.callback(made[-1].process.wait, 300)
            stack.callback(made[-1].process.kill)
        yield made


def lost(peer: Peer) -> None:
    """The machine of a server is switched off: whatever runs there ends."""
    peer.process.kill()
    peer.process.wait()


def test_the_jobs_of_a_machine_that_is_gone_start_on_the_other(
    tmp_path: Path, url: str, machines: tuple[Machine, Machine]
) -> None:
    root = tmp_path / "data"
    with serving(machines, root, url) as (first, second):
        assert [first.role, second.role] == ["leader", "standby"]
        for peer, name in ((first, "one"), (second, "two")):
            peer.submit(name)
            second.sees(name, "running")
        directory = JobDirectory(root / "jobs" / "one")
        with pytest.raises(ServerError, match="on another machine"):
            second.client().read_stacks("one")
        second.client().rescale_job("two", 3)
        first.sees("two", "running")
        lost(first)
        wait_until(lambda: second.role == "leader")
        wait_until(lambda: len(starts(root, "one")) == 2)
        for name in ("one", "two"):
            second.sees(name, "running")
        assert directory.is_held(SUPERVISOR)
        assert "twice" not in starts(root, "one") + starts(root, "two")
        second.client().act("one", "pause")
        second.sees("one", "paused")
        assert not directory.is_held(DRIVER)


def test_a_machine_that_is_cut_off_keeps_its_jobs_and_the_other_answers_for_them(
    tmp_path: Path, url: str, machines: tuple[Machine, Machine]
) -> None:
    root = tmp_path / "data"
    with serving(machines, root, url) as (first, second):
        first.submit("one")
        second.sees("one", "running")
        machines[0].plug("down")
        wait_until(lambda: second.role == "leader")
        second.sees("one", "running")
        assert starts(root, "one") == ["start"], "the directory is reached still, and the job runs there"
        second.client().act("one", "stop")
        second.sees("one", "stopped")
        second.client().act("one", "resume")
        second.sees("one", "running")
        assert starts(root, "one") == ["start", "start"]
        machines[0].plug("up")
        wait_until(lambda: _role(first) == "standby")
        first.sees("one", "running")
        lost(first)
        second.sees("one", "running")
        assert "twice" not in starts(root, "one")


def _role(peer: Peer) -> str:
    try:
        return peer.role
    except (OSError, PenstockError):
        return ""
