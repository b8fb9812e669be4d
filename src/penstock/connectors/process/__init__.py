"""What this process itself reads and writes: memory, standard input, spouts, console."""

from penstock.connectors.connector import Connector

CONNECTORS = (
    Connector("items", __name__, source="memory:ItemsSource", local_reader="local:read_items"),
    Connector("rate", __name__, source="memory:RateSource", local_reader="local:read_numbers"),
    Connector("generate", __name__, local_reader="local:read_generated"),
    Connector("socket", __name__, source="memory:SocketSource"),
    Connector("stdin", __name__, source="feed:StdinSource", local_reader="local:read_lines"),
    Connector("spout", __name__, source="spout:SpoutSource", local_reader="local:read_spout"),
    Connector("callback", __name__, sink="console:CallbackSink", local_writer="local:call_back"),
    Connector("console", __name__, sink="console:ConsoleSink", local_writer="local:print_rows"),
    Connector("nothing", __name__, sink="console:NothingSink", local_writer="local:write_nothing"),
)
