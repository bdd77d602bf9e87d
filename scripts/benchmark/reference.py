"""The measure of the rest: one `async def` route that returns a `Response`, and nothing else."""

import socket
import sys

import uvicorn
from fastapi import FastAPI, Response

BODY = b"x" * 1024
app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/note")
async def note() -> Response:
    """The same 1 KB as the note that Strongroom is asked for."""
    return Response(BODY, media_type="text/markdown")


def main() -> None:
    """Serve it on a free port, under the flags of a Strongroom worker."""
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stderr.write(f'{{"event": "serving", "port": {listener.getsockname()[1]}}}\n')
    config = uvicorn.Config(
        app,
        http="httptools",
        loop="uvloop",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
