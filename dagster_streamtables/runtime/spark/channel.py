"""The way to the local server: by the loopback address, with the token that it asks for.

Spark's own client would do neither. With a token it takes TLS, which the server does not speak,
but for the host ``localhost``; and that may be ``[::1]``, where another user may listen on the port
that the server has at 127.0.0.1, and be told the token. The token is in no address, so in no
message, no log and no list of processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.connect.client import DefaultChannelBuilder


def to_local(port: int, token: str, options: str) -> DefaultChannelBuilder:
    """What opens a channel to the local server.

    Args:
        port: On which it listens.
        token: That it asks for.
        options: Of the client, as they stand behind ``/;`` in an address.
    """
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Local(DefaultChannelBuilder):
        def toChannel(self) -> grpc.Channel:
            # They make sure that the other end is on this machine, too.
            machine = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
            key = grpc.access_token_call_credentials(token)
            both = grpc.composite_channel_credentials(machine, key)
            return self._secure_channel(self.endpoint, both)

    return Local(f"sc://127.0.0.1:{port}/;{options}")
