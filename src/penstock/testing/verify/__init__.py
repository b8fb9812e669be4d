"""Verifies that a sink delivers exactly once: `penstock verify SINK`, or from Python; and that jobs run, once: `penstock verify jobs`.

>>> from penstock.testing.verify import Plan, verify
>>> Plan("files", records=1_000, kills=3).per_batch
100
"""

from penstock.testing.verify.job_tally import JobsPlan, JobsTally
from penstock.testing.verify.jobs import verify_jobs
from penstock.testing.verify.tally import Sent, Tally, tally
from penstock.testing.verify.targets import TARGETS, FollowingReader, Glance, Reader, SinkRow, Target, target_of
from penstock.testing.verify.verify import Plan, verify
from penstock.testing.verify.windows import WINDOWS, Kill, Window, schedule

__all__ = [
    "TARGETS",
    "WINDOWS",
    "FollowingReader",
    "Glance",
    "JobsPlan",
    "JobsTally",
    "Kill",
    "Plan",
    "Reader",
    "SinkRow",
    "Sent",
    "Tally",
    "Target",
    "Window",
    "schedule",
    "tally",
    "target_of",
    "verify",
    "verify_jobs",
]
