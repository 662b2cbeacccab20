"""The stand-in for the program ``hdc``: asks the server of a virtual phone and prints its answer.

It is written beside the server's port into an executable file, so it imports nothing of ours. Like the real one it
always exits with 0.
"""

import json
import os
import socket
import sys

PORT = 0


def main() -> int:
    """Ask, print, and write the file that was fetched."""
    port = int(os.environ.get("OHOS_HDC_SERVER_PORT") or PORT)
    try:
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answer:
            connection.sendall(json.dumps({"arguments": sys.argv[1:]}).encode() + b"\n")
            head = json.loads(answer.readline() or b'{"out": "", "file": null, "size": 0}')
            data = answer.read(head["size"])
    except OSError:
        os.write(1, b"Connect server failed\n")
        return 0
    if head["file"] is not None:
        with open(head["file"], "wb") as file:  # noqa: PTH123 - pathlib would double the time to start
            file.write(data)
    with open(1, "wb", closefd=False) as out:
        out.write(head["out"].encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
