"""Processes that cannot join one another: each error is one line, after a bounded time. Threads
stand for the processes."""

from __future__ import annotations

import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jax
import pytest
from host_processes import command, finish, free_port, launch

from azero.distributed import cluster, links, rendezvous, token
from azero.distributed.cluster import in_cluster, join
from azero.distributed.links import ProcessLinks, receive, send
from azero.train.settings import RunConfig


@pytest.fixture
def together() -> Any:
    """Start functions at once, each in a thread of its own."""
    with ThreadPoolExecutor(8) as pool:

        def start(*functions: Callable[[], Any]) -> list[Future[Any]]:
            return [pool.submit(function) for function in functions]

        yield start


TOKEN = "the token of the run"


def lead(
    port: int, count: int, seconds: float = 20.0, token: str = TOKEN
) -> Callable[[], ProcessLinks]:
    return lambda: rendezvous.wait_for_processes(
        rendezvous.listen("127.0.0.1", port), count, seconds, token
    )


def other(
    port: int, process: int, count: int, seconds: float = 20.0, token: str = TOKEN
) -> Callable[[], ProcessLinks]:
    return lambda: rendezvous.connect(("127.0.0.1", port), process, count, seconds, lambda: token)


def test_all_meet_in_any_order_and_hear_of_each_other(together: Any) -> None:
    port = free_port()
    late = [*together(other(port, 2, 3)), *together(lead(port, 3)), *together(other(port, 1, 3))]
    second, first, third = (future.result(timeout=20) for future in late)
    third.broadcast_failure("the disk is full", 2)
    assert receive(first._connections[1], 5.0) == {
        "end": "the disk is full",
        "process": 1,
        "status": 2,
    }
    first.leave()
    assert receive(second._connections[0], 5.0) == {"bye": True}


def test_a_process_that_does_not_come_is_named(together: Any) -> None:
    port = free_port()
    waiting, present = together(lead(port, 4, 1.5), other(port, 2, 4, 1.5))
    for future in (waiting, present):
        with pytest.raises(ValueError, match=re.escape("processes 1, 3 of 4 did not join within")):
            future.result(timeout=20)


def test_two_with_one_id_and_another_count_are_refused_and_the_rest_meets(together: Any) -> None:
    port = free_port()
    first, wrong, one, again = together(
        lead(port, 3), other(port, 1, 2), other(port, 1, 3), other(port, 1, 3)
    )
    with pytest.raises(
        ValueError,
        match=re.escape(
            "process 1 was started for 2 processes, process 0 for 3 (run.num-processes)"
        ),
    ):
        wrong.result(timeout=20)
    end = time.monotonic() + 20
    while not (one.done() or again.done()):
        assert time.monotonic() < end
        time.sleep(0.05)
    with pytest.raises(
        ValueError, match=r"there are two processes with the id 1 \(run.process-id\)"
    ):
        (one if one.done() else again).result()
    [two] = together(other(port, 2, 3))
    assert two.result(timeout=20) is not None and first.result(timeout=20) is not None


def test_an_address_where_nobody_or_somebody_else_listens(together: Any) -> None:
    began = time.monotonic()
    with pytest.raises(
        ValueError,
        match=r"process 1 cannot reach process 0 at 127.0.0.1:\d+ within 1 s: Connection "
        r"refused; is the address right",
    ):
        other(free_port(), 1, 2, 1.0)()
    with pytest.raises(
        ValueError, match=r"process 1 cannot reach process 0 at no.such.host.invalid:7000"
    ):
        rendezvous.connect(("no.such.host.invalid", 7000), 1, 2, 1.0, lambda: TOKEN)
    assert time.monotonic() - began < 20
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def greet() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH\r\n")

        together(greet)
        with pytest.raises(ValueError, match="is not process 0 of this run"):
            other(stranger.getsockname()[1], 1, 2)()
        with pytest.raises(
            ValueError,
            match=r"process 0 cannot listen on port \d+ of 127\.0\.0\.1: .*; use another port",
        ):
            rendezvous.listen("127.0.0.1", stranger.getsockname()[1])


def test_who_connects_and_says_nothing_sensible_is_passed_over(together: Any) -> None:
    listener = rendezvous.listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    [first] = together(lambda: rendezvous.wait_for_processes(listener, 2, 20.0, TOKEN))
    silent = [
        socket.create_connection(("127.0.0.1", port), timeout=5)
        for _ in range(rendezvous.MOST_PENDING + 3)
    ]
    for content in (b"GET / HTTP/1.1\r\n\r\n", b"[1, 2]\n", b'{"process": 1}\n', b""):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as scanner:
            scanner.sendall(content)
    [one] = together(other(port, 1, 2))
    assert one.result(timeout=4) is not None and first.result(timeout=4) is not None, (
        "who says nothing does not keep the others waiting"
    )
    for connection in silent:
        connection.close()


@pytest.mark.parametrize("wrong", ["", "another token"])
def test_a_process_without_the_token_is_refused_in_one_line_and_the_rest_meets(
    wrong: str, together: Any
) -> None:
    port = free_port()
    first, stranger = together(lead(port, 2), other(port, 1, 2, token=wrong))
    with pytest.raises(
        ValueError,
        match="process 1 has no token, or not that of process 0: use one working directory for "
        "all, or the same AZERO_TOKEN",
    ) as error:
        stranger.result(timeout=20)
    assert "\n" not in str(error.value)
    [one] = together(other(port, 1, 2))
    assert one.result(timeout=20) is not None and first.result(timeout=20) is not None


def test_a_lead_without_the_token_is_not_believed(together: Any) -> None:
    """Somebody else listens at the address, who does all that the lead does but has no token."""
    with socket.create_server(("127.0.0.1", 0)) as impostor:

        def pretend() -> None:
            connection, _ = impostor.accept()
            with connection:
                send(connection, {"nonce": "0"})
                receive(connection, 5.0)
                send(connection, {"go": True, "proof": "0" * 64})

        together(pretend)
        with pytest.raises(ValueError, match="is not process 0 of this run"):
            other(impostor.getsockname()[1], 1, 2)()


def test_only_the_named_address_is_listened_on() -> None:
    with rendezvous.listen("127.0.0.1", 0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
    with pytest.raises(
        ValueError,
        match=r"process 0 cannot listen on port \d+ of 192\.0\.2\.1: .*; use an address of "
        r"this host in run\.coordinator-bind",
    ):
        rendezvous.listen("192.0.2.1", free_port())


def test_the_token_is_a_file_that_only_its_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZERO_TOKEN", raising=False)
    made = token.load_or_create_token(tmp_path / "run")
    assert len(made) == 64 and (tmp_path / "run" / ".token").stat().st_mode & 0o777 == 0o600
    assert (
        token.load_or_create_token(tmp_path / "run")
        == made
        == token.wait_for_token(tmp_path / "run", 1)
    )
    monkeypatch.setattr(token, "_SEEN_SECONDS", 0.1)
    with pytest.raises(
        ValueError,
        match=r"process 1 finds no token: .*elsewhere/\.token does not exist; give a --workdir "
        r"that all hosts share",
    ):
        token.wait_for_token(tmp_path / "elsewhere", 1)
    monkeypatch.setenv("AZERO_TOKEN", "said")
    assert (
        token.load_or_create_token(tmp_path / "other")
        == "said"
        == token.wait_for_token(tmp_path / "other", 1)
        and not (tmp_path / "other").exists()
    )


STOPPED = """
import sys, time
from azero.distributed import links, rendezvous
links.BEAT_SECONDS = 0.1
rendezvous.connect(("127.0.0.1", int(sys.argv[1])), 1, 2, 60.0, lambda: "the token of the run").watch()
print("here", flush=True)
time.sleep(100)
"""


def test_a_process_that_is_stopped_ends_the_run(
    together: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """SIGSTOP: its connection stays open, and only its beats are missing."""
    monkeypatch.setattr(links, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(links, "HUNG_SECONDS", 1.0)
    ended: list[int] = []
    monkeypatch.setattr(links, "end_process", ended.append)
    port = free_port()
    [first] = together(lead(port, 2, 60.0))
    process = launch([sys.executable, "-c", STOPPED, str(port)])
    try:
        own_links = first.result(timeout=60)
        own_links.watch()
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        time.sleep(1.5)
        assert not ended, "it beats"
        process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 20
        while not ended and time.monotonic() < end:
            time.sleep(0.05)
        assert ended == [links.EXIT_INTERRUPTED]
        assert (
            "process 1 (" in (output := capfd.readouterr().err)
            and "no heartbeat for 1 s, so it seems to be stopped" in output
        )
    finally:
        process.kill()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="an option of Linux")
def test_a_heartbeat_that_is_not_acknowledged_ends_the_connection() -> None:
    """Probes alone would not: none is sent while data is on its way."""
    with socket.socket() as connection:
        links.keep_alive(connection)
        limit = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert limit == 75_000


ERRORS = [
    ({"coordinator": "here"}, "run.coordinator = 'here' is not HOST:PORT"),
    ({"coordinator": "here:80000"}, "run.coordinator = 'here:80000' is not HOST:PORT"),
    (
        {"coordinator": "here:80", "num_processes": 2},
        "run.coordinator also needs run.num-processes and run.process-id",
    ),
    (
        {"coordinator": "here:80", "num_processes": 2, "process_id": 2},
        "run.process-id = 2 is not one of the 2 processes, which count from 0",
    ),
    ({"num_processes": 2}, "need run.coordinator, the HOST:PORT of process 0"),
    ({"coordinator_bind": "10.0.0.1"}, "need run.coordinator, the HOST:PORT of process 0"),
    ({"distributed": "off", "process_id": 1}, "need run.distributed auto or on"),
]


@pytest.mark.parametrize(("settings", "words"), ERRORS)
def test_settings_that_do_not_fit(settings: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        join(RunConfig(**settings), tmp_path)


def test_a_process_alone_in_an_allocation_of_slurm_is_told_how_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of several tasks that starts one process, without srun."""

    def initialize(**options: Any) -> None:
        raise ValueError("coordinator_address should be defined.")

    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    with pytest.raises(ValueError, match=r"alone: run\.distributed off"):
        join(RunConfig(), tmp_path)


def test_a_process_alone_ends_with_a_line(tmp_path: Any) -> None:
    """The whole program: it says what it waits for, then what is wrong, and nothing else."""
    where = [
        "--run.coordinator",
        f"127.0.0.1:{free_port()}",
        "--run.num-processes",
        "2",
        "--run.process-id",
        "1",
        "--run.join-seconds",
        "1",
    ]
    [(status, output, error)] = finish([launch(command(tmp_path, *where))], 60)
    assert status == 2 and output == ""
    assert re.fullmatch(
        r"azero: process 1 cannot reach process 0 at \S+ within 1 s: Connection refused; "
        r"is the address right, and is process 0 running\?\n",
        error,
    )


@pytest.mark.parametrize(
    ("environment", "several"),
    [
        ({}, False),
        ({"SLURM_NTASKS": "1"}, False),
        ({"SLURM_NTASKS": "4"}, True),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, True),
        ({"JAX_COORDINATOR_ADDRESS": "a:1"}, True),
        ({"TPU_WORKER_HOSTNAMES": "localhost"}, False),
        ({"TPU_WORKER_HOSTNAMES": "a,b"}, True),
        ({"MEGASCALE_NUM_SLICES": "2", "TPU_WORKER_HOSTNAMES": "a"}, True),
    ],
)
def test_a_cluster_is_found_in_the_environment(environment: dict[str, str], several: bool) -> None:
    assert in_cluster({"TPU_SKIP_MDS_QUERY": "1", **environment}) is several


def test_a_cloud_tpu_vm_asks_the_metadata_server(monkeypatch: pytest.MonkeyPatch) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ok = self.headers["Metadata-Flavor"] == "Google" and self.path.endswith(
                "/attributes/worker-network-endpoints"
            )
            self.send_response(200 if ok else 404)
            self.end_headers()
            self.wfile.write(b"unused:0:10.0.0.1,unused:1:10.0.0.2" if ok else b"")

        def log_message(self, *arguments: Any) -> None:
            pass

    monkeypatch.setattr(cluster, "_has_tpu", lambda environment: True)
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert in_cluster({"GCE_METADATA_IP": f"127.0.0.1:{server.server_port}"})
        server.shutdown()
    assert not in_cluster({"GCE_METADATA_IP": f"127.0.0.1:{free_port()}"}), (
        "no such server, no cluster"
    )
