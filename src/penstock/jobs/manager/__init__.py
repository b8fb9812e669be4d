"""Jobs: flows that run because somebody wants them to, whatever happens to terminals, processes and machines.

A `Manager` keeps what is wanted in a database; each job that is to run has a supervisor, a small process that starts its driver and starts it
again. Supervisors need no manager: one that comes back finds them by the locks that they hold.
"""
