"""The two forms of the protocol: frames of MessagePack on a socket, and lines of JSON on standard input and output."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import struct
from typing import Any, Dict, Optional, Tuple

from ..protocol.messages import MESSAGES, MessageError, check, decode, encode

FRAME_MAX = 32 << 20


class Frames:
    """A length of 4 bytes, big-endian, and a message."""

    async def read(self, reader: asyncio.StreamReader) -> Optional[Tuple[str, Dict[str, Any]]]:
        """(wire name, fields), or None at the end."""
        try:
            (size,) = struct.unpack(">I", await reader.readexactly(4))
            if size > FRAME_MAX:
                raise MessageError(f"a frame of {size} bytes; the maximum is {FRAME_MAX}")
            return decode(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionResetError):
            return None

    def bytes_of(self, wire: str, fields: Dict[str, Any]) -> bytes:
        message = encode(wire, **fields)
        if len(message) > FRAME_MAX:
            raise MessageError(f"{wire} is {len(message)} bytes; the maximum is {FRAME_MAX}")
        return struct.pack(">I", len(message)) + message


class Lines:
    """An object of JSON a line, its `type` the wire name."""

    async def read(self, reader: asyncio.StreamReader) -> Optional[Tuple[str, Dict[str, Any]]]:
        line = await reader.readline()
        if not line:
            return None
        told = json.loads(line)
        wire = told.pop("type")
        table = MESSAGES[wire]
        fields = {name: json.dumps(value) if table.get(name, {}).get("json") else value for name, value in told.items()}
        if "data_base64" in fields:
            fields["data"] = base64.b64decode(fields.pop("data_base64"))
        elif isinstance(fields.get("data"), str):
            fields["data"] = fields["data"].encode()
        check(wire, fields)
        return wire, fields

    def bytes_of(self, wire: str, fields: Dict[str, Any]) -> bytes:
        given = {name: value for name, value in fields.items() if value is not None}
        check(wire, given)
        table, told = MESSAGES[wire], {"type": wire}
        for name, value in given.items():
            if isinstance(value, bytes):
                try:
                    told["data"] = value.decode()
                except UnicodeDecodeError:
                    told["data_base64"] = base64.b64encode(value).decode()
            else:
                told[name] = json.loads(value) if table[name].get("json") else value
        return (json.dumps(told) + "\n").encode()


async def streams_of_socket(fd: int) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_unix_connection(sock=socket.socket(fileno=fd), limit=1 << 20)


async def streams_of_pipes(source: Any, sink: Any) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=FRAME_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop), sink)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
