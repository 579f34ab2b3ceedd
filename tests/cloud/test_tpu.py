"""`azero tpu` against a gcloud that only writes down what it is asked: commands, states of the
queue, errors in one line, the scripts themselves."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from azero.cloud import commands, scripts
from azero.cloud.requests import Hardware, Place, Storage
from azero.cloud.watch import Do, SeenState, decide
from azero.commands import main as cli
from azero.models.registry import MOST_BYTES

WHERE = Place(zone="us-west4-a", project="my-project")
REQUEST = r"queued-resources describe"
MACHINE = r"tpu-vm describe"
STATUS = r"azero-status"
CREATE = r"queued-resources create"
INSTALL = r"uv pip install"
LAUNCH = r"setsid"
MISSING = (
    "ERROR: (gcloud.compute.tpus.queued-resources.describe) NOT_FOUND: Resource 'my-go9' was not "
    "found"
)


class Fake:
    """The stand-in and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answer()

    def answer(self, *answers: tuple[str, int, str]) -> None:
        (self.folder / "answers.json").write_text(json.dumps(answers))

    @property
    def calls(self) -> list[list[str]]:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def story(self) -> list[str]:
        """The calls in a word each."""
        words = {
            REQUEST: "request",
            MACHINE: "machine",
            STATUS: "status",
            CREATE: "create",
            "scp": "copy",
            INSTALL: "install",
            LAUNCH: "launch",
        }
        words |= {"queued-resources delete": "delete", "tail -n": "logs"}
        # A script of launching tells its status, too, so the order matters.
        lines = [" ".join(call) for call in self.calls]
        order = [
            REQUEST,
            MACHINE,
            CREATE,
            "queued-resources delete",
            "scp",
            INSTALL,
            LAUNCH,
            STATUS,
            "tail -n",
        ]
        return [next(words[pattern] for pattern in order if pattern in line) for line in lines]


@pytest.fixture
def gcloud(tmp_path, monkeypatch) -> Fake:
    monkeypatch.setenv("FAKE_GCLOUD", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(__file__).parent}{os.pathsep}{os.environ['PATH']}")
    return Fake(tmp_path)


def azero_tpu(capsys, monkeypatch, line: str) -> tuple[int, str, str]:
    """Run `azero tpu LINE` and return status, output and errors, without line breaks that the width
    of a terminal made."""
    monkeypatch.setattr("sys.argv", ["azero", "tpu", *shlex.split(line)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


SPOT = "--accelerator v5litepod-8 --spot --zone us-west4-a --project my-project"
WATCH = f"watch my-go9 go9 {SPOT} --disk runs --poll-seconds 0.001"


def test_a_dry_run_prints_commands_that_a_shell_reads_back(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # no gcloud
    status, out, _ = azero_tpu(capsys, monkeypatch, f"create my-go9 {SPOT} --disk runs --dry-run")
    assert status == 0
    lines = [line for line in out.splitlines() if not line.startswith("#")]
    assert shlex.split(lines[0]) == [
        "gcloud", "compute", "tpus", "queued-resources", "create", "my-go9", "--project=my-project", "--zone=us-west4-a", "--node-id=my-go9",
        "--accelerator-type=v5litepod-8", "--runtime-version=v2-alpha-tpuv5-lite", "--spot",
        "--data-disk=source=projects/my-project/zones/us-west4-a/disks/runs,mode=read-write",
    ]  # fmt: skip
    status, out, _ = azero_tpu(
        capsys, monkeypatch, "launch my-go9 go9 --dry-run -- --search.num-simulations 64"
    )
    command = shlex.split(out.partition("\n")[2])
    assert (
        command[:6] == ["gcloud", "compute", "tpus", "tpu-vm", "ssh", "my-go9"]
        and "--worker=all" in command
    )
    assert "--workdir /mnt/azero/go9 --search.num-simulations 64" in next(
        word for word in command if word.startswith("--command=")
    )


def test_a_watch_shows_its_whole_plan(capsys, monkeypatch):
    status, out, _ = azero_tpu(capsys, monkeypatch, f"{WATCH} --delete-when-done --dry-run")
    assert status == 0
    for word in (
        "queued-resources describe",
        "queued-resources create",
        "tar --create",
        "scp",
        "uv venv",
        "setsid nohup",
        "queued-resources delete",
    ):
        assert word in out
    assert (
        out.index("queued-resources create")
        < out.index("tar --create")
        < out.index("scp")
        < out.index("setsid")
        < out.index("queued-resources delete")
    )


def test_create_waits_in_the_queue(capsys, monkeypatch, gcloud):
    gcloud.answer(
        (REQUEST, 0, "WAITING_FOR_RESOURCES"), (REQUEST, 0, "PROVISIONING"), (REQUEST, 0, "ACTIVE")
    )
    status, out, _ = azero_tpu(capsys, monkeypatch, f"create my-go9 {SPOT} --poll-seconds 0.001")
    assert status == 0 and gcloud.story() == ["create", "request", "request", "request"]
    assert "WAITING_FOR_RESOURCES" in out and "PROVISIONING" in out and "my-go9 is ready" in out


def test_create_tells_why_a_request_failed(capsys, monkeypatch, gcloud):
    gcloud.answer((REQUEST, 0, "FAILED\tno more capacity in the zone"))
    status, _, err = azero_tpu(capsys, monkeypatch, f"create my-go9 {SPOT}")
    assert (
        status == 2 and "no more capacity in the zone" in err and "azero tpu delete my-go9" in err
    )


def test_create_outlives_a_network_that_fails(capsys, monkeypatch, gcloud):
    lost = (REQUEST, 1, "ERROR: (gcloud.x) network is unreachable")
    gcloud.answer((REQUEST, 0, "PROVISIONING"), *[lost] * 4, (REQUEST, 0, "ACTIVE"))
    line = f"create my-go9 {SPOT} --poll-seconds 0.001"
    status, out, _ = azero_tpu(capsys, monkeypatch, line)
    assert status == 0 and out.count("network is unreachable") == 4 and "is ready" in out
    gcloud.answer(lost)
    status, _, err = azero_tpu(capsys, monkeypatch, line)
    assert status == 2 and "azero tpu delete my-go9 cancels it" in err


def test_a_reason_of_several_lines_is_told_whole(capsys, monkeypatch, gcloud):
    gcloud.answer((REQUEST, 0, "FAILED\tno more capacity\n\nin this zone"))
    status, _, err = azero_tpu(capsys, monkeypatch, f"create my-go9 {SPOT} --poll-seconds 0.001")
    assert status == 2 and "FAILED no more capacity  in this zone" in err


def test_connections_end_with_the_machine(capsys, monkeypatch, gcloud):
    """A watch would wait for hours where a machine goes while it is set up."""
    gcloud.answer((REQUEST, 0, "ACTIVE"), (MACHINE, 0, "READY"), (STATUS, 0, "azero-status: absent"),
        (LAUNCH, 1, "ERROR: gone"),
    )  # fmt: skip
    azero_tpu(capsys, monkeypatch, WATCH)
    calls = [call for call in gcloud.calls if "tpu-vm" in call and "describe" not in call]
    assert {call[3] for call in calls} == {"ssh", "scp"}
    assert all(f"--{call[3]}-flag=-oServerAliveInterval=15" in call for call in calls)


def test_watch_brings_a_run_through_a_preemption(capsys, monkeypatch, gcloud):
    gcloud.answer(
        (REQUEST, 1, MISSING), (REQUEST, 0, "PROVISIONING"), (REQUEST, 0, "ACTIVE"), (REQUEST, 0, "ACTIVE"), (REQUEST, 0, "SUSPENDING"), (REQUEST, 0, "SUSPENDED"),
        (REQUEST, 0, "ACTIVE"),
        (MACHINE, 0, "READY"),
        (LAUNCH, 0, "worker: started"),
        (STATUS, 0, "azero-status: absent"), (STATUS, 0, "azero-status: running [ 3/1000]"), (STATUS, 0, "azero-status: absent"), (STATUS, 0, "azero-status: ended 0"),
    )  # fmt: skip
    status, out, _ = azero_tpu(capsys, monkeypatch, f"{WATCH} --delete-when-done")
    begin = ["copy", "install", "launch"]
    look = ["request", "machine", "status"]
    assert gcloud.story() == [
        "request", "create", "request", *look, *begin, *look, "request", "request", "delete", "create", *look, *begin, *look, "delete"
    ]  # fmt: skip
    assert (
        status == 0
        and "was preempted (SUSPENDED)" in out
        and "[ 3/1000]" in out
        and "is finished" in out
    )


def test_watch_recreates_a_machine_that_is_preempted_while_its_request_is_active(
    capsys, monkeypatch, gcloud
):
    gcloud.answer(
        (REQUEST, 0, "ACTIVE"),
        (MACHINE, 0, "PREEMPTED"),
        (MACHINE, 0, "READY"),
        (LAUNCH, 0, ""),
        (STATUS, 0, "azero-status: ended 0"),
    )
    status, out, _ = azero_tpu(capsys, monkeypatch, WATCH)
    assert (
        status == 0
        and gcloud.story()[:4] == ["request", "machine", "delete", "create"]
        and "still costs money" in out
    )


def test_watch_stops_where_a_person_is_needed(capsys, monkeypatch, gcloud):
    gcloud.answer(
        (REQUEST, 0, "ACTIVE"), (MACHINE, 0, "READY"), (LAUNCH, 0, ""), ("tail -n 20", 0, "azero: the loss is not finite"),
        (STATUS, 0, "azero-status: absent"), (STATUS, 0, "azero-status: ended 0\nazero-status: ended 2"),
    )  # fmt: skip
    status, out, _ = azero_tpu(capsys, monkeypatch, f"{WATCH} --delete-when-done")
    assert status == 2 and "ended with status 2" in out and "the loss is not finite" in out
    assert gcloud.story()[-1] == "logs" and "--worker=all" in gcloud.calls[-1]


def test_a_watch_that_gives_up_says_that_the_machine_costs_money(capsys, monkeypatch, gcloud):
    refused = 'ERROR: (gcloud.x) SSH Key is not present in the SSH agent. Please run "ssh-add KEY"'
    gcloud.answer(
        (REQUEST, 0, "ACTIVE"), (MACHINE, 0, "READY"), ("scp", 1, refused),
        (STATUS, 0, "azero-status: absent"),
    )  # fmt: skip
    status, _, err = azero_tpu(capsys, monkeypatch, WATCH)
    assert (
        status == 2 and "ssh-add KEY" in err and "costs money until azero tpu delete my-go9" in err
    )


def test_the_status_of_a_watch_is_that_of_the_failure(capsys, monkeypatch, gcloud):
    """The other workers end with 75, by which a caller would continue the run."""
    gcloud.answer(
        (REQUEST, 0, "ACTIVE"), (MACHINE, 0, "READY"), (LAUNCH, 0, ""),
        (STATUS, 0, "azero-status: absent"), (STATUS, 0, "azero-status: ended 75\nazero-status: ended 2"),
    )  # fmt: skip
    status, out, _ = azero_tpu(capsys, monkeypatch, WATCH)
    assert status == 2 and "ended with status 2" in out


def test_watch_waits_for_all_workers_of_a_large_slice(capsys, monkeypatch, gcloud):
    finishing = "azero-status: running report\n" + "azero-status: ended 0\n" * 63
    gcloud.answer(
        (REQUEST, 0, "ACTIVE"), (MACHINE, 0, "READY"), (LAUNCH, 0, ""),
        (STATUS, 0, "azero-status: absent\n" * 64), (STATUS, 0, finishing), (STATUS, 0, "azero-status: ended 0\n" * 64),
    )  # fmt: skip
    line = "watch my-go9 go9 --accelerator v5litepod-256 --bucket runs --poll-seconds 0.001"
    status, out, _ = azero_tpu(capsys, monkeypatch, f"{line} --delete-when-done")
    assert status == 0 and gcloud.story().count("status") == 3 and "64 workers, running" in out


def test_watch_outlives_a_network_that_fails_but_not_a_mistake_at_the_beginning(
    capsys, monkeypatch, gcloud
):
    lost = (REQUEST, 1, "ERROR: (gcloud.x) network is unreachable")
    gcloud.answer(
        (REQUEST, 0, "PROVISIONING"),
        *[lost] * 4,
        (REQUEST, 0, "ACTIVE"),
        (MACHINE, 0, "READY"),
        (LAUNCH, 0, ""),
        (STATUS, 0, "azero-status: ended 0"),
    )
    status, out, _ = azero_tpu(capsys, monkeypatch, WATCH)
    assert status == 0 and out.count("network is unreachable") == 4
    gcloud.answer(lost)
    assert azero_tpu(capsys, monkeypatch, WATCH)[0] == 2


def test_watch_outlives_a_machine_that_goes_while_ssh_waits_for_it(
    capsys, monkeypatch, gcloud, tmp_path
):
    """ssh, which gcloud starts, keeps gcloud's output open."""
    monkeypatch.setattr("azero.cloud.gcloud.ANSWER_SECONDS", 3.0)
    hangs = tmp_path / "bin" / "gcloud"
    hangs.parent.mkdir()
    hangs.write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in *'{STATUS}'*) [ -e {tmp_path}/hung ] || "
        f"{{ touch {tmp_path}/hung; sleep 60; exit 0; }};; esac\n"
        f'exec {Path(__file__).parent}/gcloud "$@"\n'
    )
    hangs.chmod(0o755)
    monkeypatch.setenv("PATH", f"{hangs.parent}{os.pathsep}{os.environ['PATH']}")
    gcloud.answer(
        (REQUEST, 0, "ACTIVE"),
        (MACHINE, 0, "READY"), (MACHINE, 0, "PREEMPTED"), (MACHINE, 0, "READY"),
        (LAUNCH, 0, ""),
        (STATUS, 0, "azero-status: ended 0"),
    )  # fmt: skip
    status, out, _ = azero_tpu(capsys, monkeypatch, WATCH)
    assert status == 0 and "asking my-go9 about the run: no answer within 3.0 s" in out
    assert gcloud.story()[:6] == ["request", "machine", "request", "machine", "delete", "create"]


def test_watch_outlives_a_network_that_fails_after_a_preemption(capsys, monkeypatch, gcloud):
    gcloud.answer(
        (REQUEST, 0, "ACTIVE"), (REQUEST, 0, "ACTIVE"), (REQUEST, 1, MISSING), (REQUEST, 0, "ACTIVE"),
        (MACHINE, 0, "PREEMPTED"), (MACHINE, 0, "PREEMPTED"), (MACHINE, 0, "READY"),
        *[("queued-resources delete", 1, "ERROR: (gcloud.x) network is unreachable"), ("queued-resources delete", 0, "")],
        *[(CREATE, 1, "ERROR: (gcloud.x) network is unreachable"), (CREATE, 0, "")],
        (LAUNCH, 0, ""),
        (STATUS, 0, "azero-status: ended 0"),
    )  # fmt: skip
    status, out, _ = azero_tpu(capsys, monkeypatch, WATCH)
    look = ["request", "machine"]
    assert status == 0 and out.count("network is unreachable") >= 2
    assert gcloud.story()[:9] == [
        *look, "delete", *look, "delete", "create", "request", "create"
    ]  # fmt: skip


def test_watch_gives_up_requests_that_fail_one_after_another(capsys, monkeypatch, gcloud):
    gcloud.answer((REQUEST, 0, "FAILED\tQuota limit 'TPUV5s' has been exceeded"))
    status, _, err = azero_tpu(capsys, monkeypatch, WATCH)
    assert (
        status == 2
        and "5 times in a row" in err
        and "TPUV5s" in err
        and gcloud.story().count("create") == 4
    )


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            "ERROR: (gcloud.x) You do not currently have an active account selected.",
            "gcloud auth login",
        ),
        (
            "ERROR: (gcloud.x) The required property [project] is not currently set.",
            "--project PROJECT",
        ),
        (
            "ERROR: (gcloud.x) Error parsing [queued_resource].\nFailed to find attribute [zone].",
            "--zone ZONE",
        ),
        (
            "ERROR: (gcloud.x) RESOURCE_EXHAUSTED: Quota limit 'TPUV5sPreemptible' has "
            "been exceeded. Limit: 0",
            "no quota left",
        ),
        (
            "ERROR: (gcloud.x) PERMISSION_DENIED: Cloud TPU API has not been used in "
            "project 1 before",
            "gcloud services enable tpu.googleapis.com",
        ),
        ("ERROR: (gcloud.x) PERMISSION_DENIED: Permission tpu.nodes.create denied", "TPU Admin"),
        ("ERROR: (gcloud.x) ALREADY_EXISTS: Resource already exists", "azero tpu delete"),
        (
            "ERROR: (gcloud.x) INVALID_ARGUMENT: the accelerator v5litepod-8 was not "
            "found in zone us-west4-a",
            "accelerator-types list",
        ),
        ("ERROR: (gcloud.x) There is no more capacity in the zone", "another zone"),
        ("ERROR: (gcloud.x) something new", "something new"),
    ],
)
def test_errors_say_what_to_do(capsys, monkeypatch, gcloud, output, line):
    gcloud.answer((CREATE, 1, output))
    status, _, err = azero_tpu(capsys, monkeypatch, f"create my-go9 {SPOT}")
    assert (
        status == 2
        and line in err
        and err.startswith("azero: asking for my-go9: ")
        and len(err.strip().splitlines()) == 1
    )


def test_what_a_script_says_on_the_machine_is_not_lost(capsys, monkeypatch, gcloud):
    gcloud.answer(
        (
            LAUNCH,
            1,
            "ERROR: azero is not installed on w-0; azero tpu setup installs it\nERROR: "
            "(gcloud.x) [/usr/bin/ssh] exited with return code [1].",
        )
    )
    status, _, err = azero_tpu(capsys, monkeypatch, "launch my-go9 go9")
    assert (
        status == 2
        and err.strip()
        == "azero: starting go9 on my-go9: azero is not installed on w-0; azero tpu setup "
        "installs it"
    )


def test_without_gcloud_there_is_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, err = azero_tpu(capsys, monkeypatch, "logs my-go9")
    assert status == 2 and "gcloud is not installed" in err


def test_delete_asks_first(capsys, monkeypatch, gcloud):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: "n")
    assert azero_tpu(capsys, monkeypatch, "delete my-go9")[0] == 1 and not gcloud.calls
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert "--yes" in azero_tpu(capsys, monkeypatch, "delete my-go9")[2] and not gcloud.calls
    assert azero_tpu(capsys, monkeypatch, "delete my-go9 --yes")[0] == 0 and gcloud.story() == [
        "delete"
    ]


def test_logs_hands_the_terminal_over(capfd, monkeypatch, gcloud):
    gcloud.answer(("tail -n 5 -F", 0, "[ 3/1000] games 4,096"))
    monkeypatch.setattr(
        "sys.argv", ["azero", "tpu", "logs", "my-go9", "--lines", "5", "--worker", "2"]
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert (
        not end.value.code
        and "[ 3/1000] games" in capfd.readouterr().out
        and "--worker=2" in gcloud.calls[0]
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("create My_Go9 --accelerator v5litepod-8", "is not a valid machine name"),
        ("create my-go9 --accelerator v5e-8", "so v5litepod-8"),
        ("create my-go9 --accelerator v9-8", "--runtime-version"),
        (
            "create my-go9 --accelerator v5litepod-64 --disk runs --zone z --project p",
            "use --bucket",
        ),
        ("create my-go9 --accelerator v5litepod-8 --disk runs", "--project and --zone"),
        ("create my-go9 --accelerator v5litepod-8 --disk /dev/sdb", "give only the disk's name"),
        ("watch my-go9 go9 --accelerator v5litepod-16", "has several hosts, which need one work"),
        ("setup my-go9 --disk a --bucket b", "give one"),
        ("watch my-go9 go9 --accelerator v5litepod-8 --bucket gs://b", "without gs://"),
        ("setup my-go9 --source /nowhere/at/all", "is not a checkout of azero"),
        ("launch my-go9 go10", "unknown experiment 'go10'"),
        ("launch my-go9 go9 --config nothing.toml", "cannot read the overlay nothing.toml"),
        ("launch my-go9 go9 --workdir gs://runs/go9", "mount the bucket"),
        ("launch my-go9 sl19", "sl19 learns from records: --data DIR"),
        ("launch my-go9 go9 -- --config mine.toml", "--config mine.toml: give it before the two"),
        ("watch my-go9 go9 --accelerator v5litepod-8 --spot", "needs --disk or --bucket"),
        (
            "watch my-go9 go9 --accelerator v5litepod-8 --spot --bucket b --workdir runs/go9",
            "runs/go9 is lost with the machine",
        ),
    ],
)
def test_mistakes_are_found_before_anything_costs_money(capsys, monkeypatch, gcloud, line, says):
    status, _, err = azero_tpu(capsys, monkeypatch, line)
    assert status == 2 and says in err and not gcloud.calls


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "1e30"])
@pytest.mark.parametrize("line", ["create my-go9", "watch my-go9 go9"])
def test_a_wrong_pause_is_found_before_anything_costs_money(
    capsys, monkeypatch, gcloud, line, seconds
):
    line = f"{line} --accelerator v5litepod-8 --poll-seconds {seconds}"
    status, _, err = azero_tpu(capsys, monkeypatch, line)
    assert status == 2 and "--poll-seconds" in err and not gcloud.calls


def test_what_a_look_leads_to():
    def after(*workers: str, launched: bool = True) -> Do:
        return decide(SeenState("ACTIVE", machine="READY", workers=workers), launched)

    assert after("ended 143", "ended 75") is Do.LAUNCH, (
        "SIGTERM ended one of them while Python was starting"
    )
    assert after("ended 2", launched=False) is Do.LAUNCH, "how an earlier run ended is no news"
    assert after("running", "ended 75") is Do.WAIT and after() is Do.WAIT
    assert (
        after("ended 75", "started") is Do.LAUNCH
        and after("ended 0", "ended 0") is Do.DONE
        and after("ended 137") is Do.STOP
    )
    assert (
        decide(SeenState("ACTIVE", machine="CREATING"), False) is Do.WAIT
        and decide(SeenState("DELETING"), True) is Do.WAIT
    )


def test_the_scripts_do_on_a_machine_what_they_say(tmp_path):
    """Launch a job with bash in a home directory of its own, whose python only sleeps and fails."""
    python = tmp_path / "azero" / ".venv" / "bin" / "python"

    def bash(script: str) -> str:
        environment = {**os.environ, "HOME": str(tmp_path)}
        return subprocess.run(
            ["bash", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        ).stdout

    def says(expected: str) -> bool:
        return any(expected in bash(scripts.status()) or bash("sleep 0.05") for _ in range(100))

    assert bash(scripts.status()).strip() == "azero-status: absent"
    python.parent.mkdir(parents=True)
    (tmp_path / "azero-run").mkdir()
    python.write_text(
        '#!/bin/sh\necho "$@"\ncat "$4"\nwhile [ ! -e go ]; do sleep 0.02; done\nexit 7\n'
    )
    python.chmod(0o755)
    start = scripts.launch(
        "go9", ["--run.seed", "it's 3"], "/mnt/azero/go9", ["[run]\nseed = 3 # $HOME `date`\n"]
    )
    assert "started" in bash(start) and says("running") and "already in progress" in bash(start)
    (tmp_path / "azero" / "go").touch()
    assert says("azero-status: ended 7")
    log = bash(scripts.logs(10, follow=False))
    assert (
        f"-m azero.experiments.go9 --config {tmp_path}/azero-run/overlay-1.toml --workdir "
        f"/mnt/azero/go9 --run.seed it's 3"
        in log
        and "seed = 3 # $HOME `date`" in log
    )
    (tmp_path / "azero-run" / "status").write_text("")
    assert bash(scripts.status()).strip() == "azero-status: started", "a full disk left it empty"


def test_a_run_does_not_start_over_beside_storage_that_is_not_mounted(tmp_path):
    """A restart of the machine, as for maintenance, unmounts it."""
    programs = tmp_path / "bin"
    python = tmp_path / "azero" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    programs.mkdir()
    setup = scripts.setup(Storage(bucket="my-bucket")).replace("~/.local/bin/uv", "true")
    setup = setup.partition("echo ")[0].replace(scripts.RUNS, str(tmp_path / "runs"))
    start = scripts.launch("go9", [], "/mnt/azero/go9", [])
    mounted = f"[ -e {tmp_path}/mounted ]"
    for name, script in {
        "sudo": 'exec "$@"',
        "gcsfuse": f"touch {tmp_path}/mounted",
        "mountpoint": mounted,
        "tar": "",
        "python3": "",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)

    def bash(script: str) -> subprocess.CompletedProcess[str]:
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-c", script],
            env={**os.environ, "HOME": str(tmp_path), "PATH": path},
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )

    assert bash(setup).returncode == 0 and "started" in bash(start).stdout
    while "ended 0" not in bash(scripts.status()).stdout:
        bash("sleep 0.1")
    (tmp_path / "mounted").unlink()
    refused = bash(start)
    assert refused.returncode == 1 and "repeat azero tpu setup with its" in refused.stderr
    assert bash(setup).returncode == 0 and "started" in bash(start).stdout


@pytest.mark.parametrize("storage", [Storage(), Storage(disk="runs"), Storage(bucket="my-bucket")])
def test_the_scripts_are_bash(storage):
    for script in (
        scripts.setup(storage),
        scripts.launch("go9", [], "/mnt/azero/go9", ["", ""]),
        scripts.status(),
        scripts.logs(5, True),
    ):
        assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0


def test_what_is_copied_can_be_installed(tmp_path):
    archive = tmp_path / "code.tar.gz"
    subprocess.run(commands.pack(None, archive).arguments, check=True)
    names = subprocess.run(
        ["tar", "-tzf", archive], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {
        "pyproject.toml",
        "README.md",
        "constraints.txt",
        "azero/commands/main.py",
        "azero/report/page.html.j2",
        "configs/v5e_8.toml",
    } <= set(names)
    assert (
        not any("__pycache__" in name for name in names)
        and archive.stat().st_size < MOST_BYTES + 2**20
    )


def test_every_type_has_an_image():
    for kind, runtime in commands.RUNTIMES.items():
        command = commands.create("m", Hardware(f"{kind}-8"), None, WHERE)
        assert f"--runtime-version={runtime}" in command.arguments
