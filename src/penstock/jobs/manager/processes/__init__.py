"""The processes of a job: a supervisor, the driver that it keeps running, and the directory through which they speak."""
