"""The connection to the local server: by its loopback address, with its token.

Spark's own client does neither. With a token it requires TLS, which the server does not speak,
except for the host ``localhost``. That may be ``[::1]``, where another user may listen on the
server's port and would receive the token. No address contains the token, so no message, log or
process list does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.connect.client import DefaultChannelBuilder


def to_local(port: int, token: str, options: str) -> DefaultChannelBuilder:
    """The builder of a channel to the local server.

    Args:
        port: The server's port.
        token: The server's token.
        options: Of the client, as in an address after ``/;``.
    """
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Local(DefaultChannelBuilder):
        def toChannel(self) -> grpc.Channel:
            # They also ensure that the other end is on this machine.
            machine = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
            key = grpc.access_token_call_credentials(token)
            both = grpc.composite_channel_credentials(machine, key)
            return self._secure_channel(self.endpoint, both)

    return Local(f"sc://127.0.0.1:{port}/;{options}")
