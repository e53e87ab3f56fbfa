"""An endpoint in a process of its own that costs its callers next to no CPU: every chat completion has the same answer after so many
seconds. Prints its port: `python benchmarks/quick_endpoint.py 0.1`."""

from __future__ import annotations

import asyncio
import json
import sys

_CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "an answer"}}
_REPLY = {"id": "x", "object": "chat.completion", "choices": [_CHOICE], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}  # fmt: skip
_BODY = json.dumps(_REPLY).encode()
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)


async def serve(seconds: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                await reader.readexactly(next(int(s[15:]) for s in lines if s.startswith(b"content-length:")))
                await asyncio.sleep(seconds)
                writer.write(_RESPONSE)
        except (asyncio.IncompleteReadError, ConnectionError):  # the client has gone
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
