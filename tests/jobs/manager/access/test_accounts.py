"""Jobs of two owners as two users of the machine: neither reaches the other's job, the manager's database or a token; links lead nowhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.access import accounts as accounts_module
from penstock.jobs.manager.access.accounts import Account, Accounts, acting_as
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.insight.dead_letters import JobDeadLetters
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.server.serve import Listening, _admin_token, serving
from tests.jobs.manager.conftest import ending
from tests.server.conftest import Service
from tests.waiting import wait_until

PYTHON = next((p for p in map(Path, ("/usr/bin/python3", "/usr/local/bin/python3")) if p.exists()), None)
"""One that all users of the machine reach."""
ADA, BOB = "nobody", "daemon"
only_root = pytest.mark.skipif(os.geteuid() != 0 or PYTHON is None, reason="only root can start processes of others")
DRIVER = """
import json, os, signal, sys, time
folder, bundle = sys.argv[1:3]
stopped = []
signal.signal(signal.SIGTERM, lambda *a: stopped.append(1))
os.makedirs(f"{folder}/checkpoint", mode=0o700, exist_ok=True)
open(f"{folder}/checkpoint/secret", "w").write("canary-state")
wanted = [f for f in os.listdir(folder) if f.startswith("wanted")]
json.load(open(f"{folder}/{wanted[0]}"))
open(f"{bundle}/flow.py").read()
print("uid", os.getuid(), flush=True)
def write(name, found):
    with open(f"{folder}/{name}.tmp", "w") as file:
        json.dump(found, file)
    os.replace(f"{folder}/{name}.tmp", f"{folder}/{name}")
write("progress.json", {"phase": "running", "batches": 1, "rows": 1, "pid": os.getpid(), "time": time.time()})
done = 0
while not stopped:
    task = f"{folder}/work/task.py"
    if os.path.exists(task) and not done:
        done = 1
        found = {"folder": folder, "bundle": bundle, "os": os, "write": write}
        try:
            exec(open(task).read(), found)
        except Exception as error:
            found["result"] = repr(error)
        write("answer.json", found.get("result"))
    time.sleep(0.02)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that everybody may enter, as /var/lib is."""
    before = os.umask(0o027)
    made = Path(tempfile.mkdtemp(prefix="penstock-accounts-"))
    made.chmod(0o755)
    (made / "driver.py").write_text(DRIVER)
    (made / "driver.py").chmod(0o644)
    yield made
    os.umask(before)
    shutil.rmtree(made)


@pytest.fixture
def manager(home: Path) -> Iterator[Manager]:
    accounts = Accounts.of([f"ada={ADA}", f"bob={BOB}"])
    made = Manager(home / "data", (str(PYTHON), str(home / "driver.py")), accounts=accounts)
    with made.opened(), ending(made):
        _admin_token(made)
        yield made


def submit(manager: Manager, home: Path, owner: str, **options: object) -> Path:
    """A job of an owner that runs; its directory."""
    file = home / "flow.py"
    file.write_text(f"password = 'canary-code-{owner}'")
    manager.submit(Job(f"of-{owner}", owner, manager.bundles.put(pack([("flow.py", file)])), "flow.py", options), owner)
    wait_until(lambda: manager.state(f"of-{owner}").phase == "running")
    return manager.directory(f"of-{owner}").path


def done_by(folder: Path, code: str) -> Any:
    """What a driver answers that does something: the value of `result`."""
    task = folder / "work" / "task.py"
    task.with_suffix(".tmp").write_text(code)
    task.with_suffix(".tmp").chmod(0o644)
    task.with_suffix(".tmp").rename(task)
    wait_until((folder / "answer.json").exists)
    return json.loads((folder / "answer.json").read_text())


@only_root
def test_a_driver_has_the_rights_of_its_owners_user(manager: Manager, home: Path) -> None:
    folder = submit(manager, home, "ada")
    found = done_by(
        folder,
        "result = [os.getresuid(), os.getresgid(), os.getgroups(), sorted(k for k in os.environ if 'TOKEN' in k or 'SECRET' in k),"
        " os.environ['HOME'], oct(os.umask(0)), __import__('resource').getrlimit(4), __import__('resource').getrlimit(6)]",
    )
    account = Account.named(ADA)
    assert found[0] == [account.uid] * 3
    assert found[1] == [account.gid] * 3
    assert found[2] in ([], [account.gid])
    assert found[3:6] == [[], str(folder / "work"), "0o77"]
    assert found[6] == [0, 0], "no image of its memory"
    assert found[7] == [accounts_module.MOST_PROCESSES] * 2


REACH = """
import os, glob
def tried(act, *given):
    try:
        return repr(act(*given))[:60]
    except OSError as error:
        return error.__class__.__name__
data, other, pid, supervisor = {data!r}, {other!r}, {pid}, {supervisor}
def forge_wish():
    found = glob.glob(folder + "/wanted*")[0]
    with open(found) as file, open(folder + "/wanted-999999.json", "w") as forged:
        forged.write(file.read().replace('"running"', '"stopped"'))
    raise PermissionError("it is written, and nobody follows it: the job runs on, see below")
read = lambda path: open(path, "rb").read(100)
result = {{
    "database": tried(read, data + "/manager.db"),
    "token": tried(read, data + "/admin.token"),
    "address": tried(read, data + "/server.json"),
    "jobs": tried(os.listdir, data + "/jobs"),
    "data": tried(os.listdir, data),
    "bundles": tried(os.listdir, data + "/bundles"),
    "checkpoint": tried(read, other + "/checkpoint/secret"),
    "other": tried(os.listdir, other),
    "its log": tried(read, other + "/log/driver.log"),
    "its work": tried(os.listdir, other + "/work"),
    "its code": tried(os.listdir, other + "/bundle"),
    "its memory": tried(read, "/proc/%d/environ" % pid),
    "the supervisor": tried(read, "/proc/%d/environ" % supervisor),
    "kill": tried(os.kill, pid, 9),
    "kill the supervisor": tried(os.kill, supervisor, 9),
    "forge": tried(open, folder + "/status.json", "w"),
    "forge what is wanted": tried(os.rename, folder + "/work/task.py", glob.glob(folder + "/wanted*")[0]),
    "forge a later wish": tried(forge_wish),
    "forge the account": tried(os.unlink, folder + "/account.json"),
    "change the code": tried(open, bundle + "/flow.py", "w"),
    "own log": tried(os.listdir, folder + "/log"),
    "write data": tried(open, data + "/x", "w"),
}}
"""


@only_root
def test_a_job_reaches_neither_the_manager_nor_the_job_of_another_owner(manager: Manager, home: Path) -> None:
    ada, bob = submit(manager, home, "ada", conf={"spark.secret": "canary-option"}), submit(manager, home, "bob")
    (home / "data" / "server.json").touch(0o600)
    pid = int(str(manager.state("of-ada").progress["pid"]))
    supervisor = manager.supervisors["of-ada"].pid
    code = REACH.format(data=str(manager.root), other=str(ada), pid=pid, supervisor=supervisor)
    found = done_by(bob, code)
    assert {what: answer for what, answer in found.items() if answer != "PermissionError"} == {}
    assert manager.directory("of-bob").wanted() == manager.records.get("of-bob")
    assert manager.state("of-bob").phase == manager.state("of-ada").phase == "running"
    assert (ada / "checkpoint" / "secret").read_text() == "canary-state"


@only_root
def test_links_and_pipes_of_a_driver_lead_nowhere(manager: Manager, home: Path) -> None:
    ada, bob = submit(manager, home, "ada", conf={"spark.secret": "canary-option"}), submit(manager, home, "bob")
    wanted = next(ada.glob("wanted*"))
    code = f"""
import os
os.symlink({str(wanted)!r}, folder + "/failure.json")
os.symlink({str(wanted)!r}, folder + "/plan.json")
os.mkfifo(folder + "/samples.json")
os.unlink(folder + "/progress.json")
os.symlink("/dev/zero", folder + "/progress.json")
os.rename(folder + "/checkpoint", folder + "/old")
os.symlink({str(ada / "checkpoint")!r}, folder + "/checkpoint")
os.rename(folder + "/work", folder + "/old-work")
os.symlink("/etc", folder + "/work")
result = "done"
"""
    done_by(bob, code)
    directory = manager.directory("of-bob")
    assert (directory.failure(), directory.plan(), directory.samples(), directory.progress()) == ({}, {}, {}, {})
    with directory.acting(), pytest.raises(Exception, match=r"(?i)permission|denied"):
        JobDeadLetters(directory).newest(10)
    owner = Path("/etc").stat().st_uid
    manager.wish("of-bob", "paused", "ada")  # makes its directory again
    assert Path("/etc").stat().st_uid == owner == 0
    assert manager.state("of-ada").phase == "running"


@only_root
def test_one_who_has_no_user_is_refused_and_so_is_a_plan_of_theirs(manager: Manager, home: Path) -> None:
    with pytest.raises(OptionError, match="no user of the machine is there for the jobs of eve; start the server with"):
        submit(manager, home, "eve")


@only_root
def test_the_server_shows_records_of_a_job_with_the_rights_of_the_job(home: Path) -> None:
    accounts = Accounts.of([f"ada={ADA}", f"bob={BOB}"])
    made = Manager(home / "data", (str(PYTHON), str(home / "driver.py")), accounts=accounts)
    with serving(made, Listening(port=0)) as url, ending(made):
        service = Service(url, made)
        ada = submit(made, home, "ada")
        submit(made, home, "bob")
        bob_plan = json.dumps({"logs": [str(ada / "checkpoint"), "/root", "/etc"], "steps": []})
        done_by(made.directory("of-bob").path, f"write('plan.json', {bob_plan})\nresult = 1")
        assert service.json("GET", "/api/v1/logs", service.token("viewer")) == {"logs": []}
        status, _, body = service.ask(
            "POST", "/api/v1/plans", service.token("developer", "eve"), {"file": "flow.py", "text": "x = 1"}
        )
        assert (status, b"no user of the machine is there" in body) == (422, True)


@only_root
def test_a_user_who_forks_without_end_stops_itself(
    manager: Manager, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = submit(manager, home, "ada")
    other = submit(manager, home, "bob")
    code = """
import os, resource, signal, time
resource.setrlimit(resource.RLIMIT_NPROC, (40, 40))
made = []
try:
    while len(made) < 500:
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
            os._exit(0)
        made.append(pid)
    result = "it went on"
except BlockingIOError:
    result = "stopped"
for pid in made:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""
    assert done_by(folder, code) == "stopped"
    assert done_by(other, "import os\nresult = os.fork() and 1 or os._exit(0)") == 1


@only_root
def test_only_the_thread_that_acts_as_a_user_is_one(home: Path) -> None:
    (home / "mine").write_text("secret")
    (home / "mine").chmod(0o600)
    inside, leave = threading.Event(), threading.Event()
    seen: list[str] = []

    def acts() -> None:
        with acting_as(Account.named(ADA)):
            try:
                (home / "mine").read_text()
            except PermissionError:
                seen.append("refused")
            inside.set()
            leave.wait(300)
        seen.append((home / "mine").read_text())

    thread = threading.Thread(target=acts)
    thread.start()
    assert inside.wait(300)
    assert (home / "mine").read_text() == "secret", "this thread is root still"
    leave.set()
    thread.join()
    assert seen == ["refused", "secret"]
    assert os.getgroups() is not None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["ada"], "expected OWNER=USER"),
        (["=nobody"], "expected OWNER=USER"),
        (["ada=nobody", "ada=daemon"], "each owner once"),
        (["ada=nobody", "bob=nobody"], "a user and a group of its own"),
        (["ada=root"], "who is not root"),
        (["ada=nobody-of-that-name"], "expected a user of this machine"),
        (["ada=no\0body"], "expected a user of this machine"),
        (["ada=../../root"], "expected a user of this machine"),
    ],
)
def test_what_is_no_user_for_an_owner_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Accounts.of(texts)


def test_one_who_is_not_root_is_told_so() -> None:
    code = "import os; os.setgid(65534); os.setuid(65534)\n" if os.geteuid() == 0 else ""
    code = f"from penstock.jobs.manager.access.accounts import Accounts\n{code}Accounts.of(['ada=daemon'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "only root can start jobs of other users" in done.stderr
    assert Accounts.of(()) == Accounts()
    assert Accounts().of_owner("anybody") is None


@only_root
def test_a_python_that_a_user_cannot_reach_is_said_before_the_server_starts(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "python").write_text("")
    (home / "python").chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(home / "python"))
    with pytest.raises(SetupError, match=f"{ADA} cannot read"):
        Accounts.of([f"ada={ADA}"]).check_python()
    assert asdict(Account.named(ADA))["uid"] > 0
