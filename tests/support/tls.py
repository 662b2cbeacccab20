"""A server's certificate, signed by itself, for shop.example and 127.0.0.1. Trust it by ``SSL_CERT_FILE``."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

PEM = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgze0lqIvU/3J4xBEP
lxBS5g7y4VQ+fNpuDfE6W4Gb+cqhRANCAAQASBkroMp6Ls9jGSPbBY03nQfptHtH
gzBSIIa2EbpTtWdEFXuSeT+gHvC0WT+Yp+EJBFaHIh+cS1RFwHm91n/S
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBozCCAUqgAwIBAgIUEfyyfNDPymU4Ku/41fWNRmhUTi0wCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMc2hvcC5leGFtcGxlMCAXDTI2MTEyOTA3MDExNFoYDzIxMjYx
MTA1MDcwMTE0WjAXMRUwEwYDVQQDDAxzaG9wLmV4YW1wbGUwWTATBgcqhkjOPQIB
BggqhkjOPQMBBwNCAAQASBkroMp6Ls9jGSPbBY03nQfptHtHgzBSIIa2EbpTtWdE
FXuSeT+gHvC0WT+Yp+EJBFaHIh+cS1RFwHm91n/So3IwcDAdBgNVHQ4EFgQUnxs1
KQp9eOP20dd8iCro21zUi/swHwYDVR0jBBgwFoAUnxs1KQp9eOP20dd8iCro21zU
i/swDwYDVR0TAQH/BAUwAwEB/zAdBgNVHREEFjAUggxzaG9wLmV4YW1wbGWHBH8A
AAEwCgYIKoZIzj0EAwIDRwAwRAIgHJ2kkJI68kUUKoG6lw2HzjRqatMxTRjI5Uu/
TxNSCwsCIHcXxEQAOWwC/tkWqWllAhE2JqfZptMVI8C2pkHTTaK1
-----END CERTIFICATE-----
"""


def certificate(folder: Path) -> Path:
    """Write the certificate with its key, and return the file."""
    file = folder / "shop.pem"
    file.write_text(PEM)
    return file


def server_context(file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@asynccontextmanager
async def leaving_tls(file: Path) -> AsyncIterator[str]:
    """Run a server that begins with TLS and answers in plain text, as a broken proxy does; yield its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        os.write(writer.get_extra_info("socket").fileno(), b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context(file))
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
