"""The web server in a thread of the test, and a visitor that talks to it over HTTP."""

import contextlib
import json
import threading
import time

import httpx
import uvicorn

from azero.engines.background import StartError
from azero.engines.web.app import Application
from azero.engines.web.limits import WebLimits
from azero.engines.web.serve import _bind as bind
from azero.engines.web.serve import make_server

GO5 = "random-net:go5?blocks=1&filters=4"
TICTACTOE = "random-net:tictactoe?blocks=1&filters=4"


class RunningServer:
    """A server that is there, its application and its address."""

    def __init__(self, application: Application, port: int, server: uvicorn.Server) -> None:
        self.application, self.port, self._server = application, port, server
        self.url = f"http://127.0.0.1:{port}"

    @property
    def service(self):
        return self.application.service.result()

    def wait_until_ready(self) -> None:
        for network in self.service._networks.values():
            network.wait(lambda: False)

    def network(self):
        """The first network."""
        return next(iter(self.service._networks.values()))


def _finish(application: Application) -> None:
    """Wait for what is still compiled: Python would crash at its exit."""
    with contextlib.suppress(StartError):
        for network in application.service.finish()._networks.values():
            if network._loading is not None:
                network._loading.finish()


@contextlib.contextmanager
def running(names, limits: WebLimits | None = None, token: str | None = None):
    application = Application(tuple(names), limits or WebLimits())
    bound = bind("127.0.0.1", 0)
    server = make_server(application, token)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield RunningServer(application, bound.getsockname()[1], server)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
        _finish(application)


class Visitor:
    """One browser tab with one game."""

    def __init__(self, url: str, **game) -> None:
        self.http = httpx.Client(base_url=url, timeout=120)
        self.game = (
            self.http.post("/api/games", json={"network": "0"} | game).raise_for_status().json()
        )

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *_) -> None:
        self.http.close()

    def post(self, what: str, **fields) -> httpx.Response:
        response = self.http.post(f"/api/games/{self.game['id']}/{what}", json=fields)
        if response.status_code == 200:
            self.game |= response.json()
        return response

    def play(self, *moves: str) -> None:
        for move in moves:
            self.post("play", move=move, ply=self.game["ply"]).raise_for_status()

    def events(self, what: str, **fields) -> list[tuple[str, dict]]:
        return list(self.stream(what, **fields))

    def stream(self, what: str, **fields):
        """Yield the events of a search; closing the generator closes the tab."""
        path = f"/api/games/{self.game['id']}/{what}"
        with self.http.stream("POST", path, json=fields) as response:
            response.raise_for_status()
            kind = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield kind, json.loads(line.removeprefix("data: "))
