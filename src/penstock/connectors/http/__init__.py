"""HTTP as sink."""

from penstock.connectors.connector import Connector

CONNECTORS = (Connector("write_http", __name__, sink="sink:HttpSink", local_writer="local:send_rows"),)
