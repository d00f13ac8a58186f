"""Schemathesis against a real daemon: no 5xx, no undocumented answer, whatever is sent.

The daemon is the one that `cargo build` made; it runs on a free port in a temporary folder and is gone afterwards.
A short cluster is made first, so that what is drawn meets something. `--seconds` bounds each run.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What never ends is tried by its own tests.
ENDLESS = ["/api/v1/events"]
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)


class Daemon:
    """The daemon as a child process, with its operator's token."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path):
        # A file, not a pipe: a pipe that nobody reads would stop the daemon once it is full.
        self.log = folder / "log"
        self.data = folder / "data"
        arguments = [program, "serve", "--data", self.data, "--listen", "127.0.0.1:0"]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=log)
        while 'url="' not in self.said() or not (self.data / "operator.token").exists():
            assert self.process.poll() is None, "the daemon did not start: " + self.said()
            time.sleep(0.05)
        self.url = self.said().split('url="')[1].split('"')[0]
        self.token = (self.data / "operator.token").read_text().strip()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def post(self, path: str, body: dict) -> dict:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), method="POST")
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def furnish(self) -> str:
        """A little of everything; answers the token of a tenant's admin."""
        self.post("/api/v1/classes", {"name": "h100", "kind": "gpu"})
        self.post("/api/v1/classes", {"name": "cpu", "kind": "cpu"})
        self.post("/api/v1/pools", {"name": "main"})
        for node in range(3):
            capacity = {"h100": 8, "cpu": "64"}
            self.post("/api/v1/nodes", {"name": f"n{node}", "pool": "main", "capacity": capacity})
        for tenant in ("physics", "chemistry"):
            self.post("/api/v1/tenants", {"name": tenant})
            self.post("/api/v1/projects", {"name": "main", "tenant": tenant})
            self.post("/api/v1/users", {"name": "ada", "tenant": tenant})
            limit = {"type": "hard", "limit": 16}
            self.post("/api/v1/quotas", {"tenant": tenant, "class": "h100", "measure": "quanta", "limit": limit})
            for _ in range(4):
                asks = [{"class": "h100", "quantity": 1}]
                self.post("/api/v1/leases", {"tenant": tenant, "project": "main", "asks": asks, "ttl": "1h"})
        issued = self.post("/api/v1/tokens", {"name": "admin", "role": "tenant_admin", "tenant": "physics"})
        return issued["secret"]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def fuzz(program: str, daemon: Daemon, token: str, seconds: int, seed: int) -> bool:
    arguments = [program, "run", daemon.url + "/api/v1/openapi.json", "--checks", CHECKS, "--workers", "1"]
    arguments += ["--max-time", str(seconds), "--max-examples", "40", "--seed", str(seed), "--no-color"]
    arguments += ["--phases", "examples,coverage,fuzzing", "--continue-on-failure", "--request-timeout", "20"]
    arguments += ["-H", f"Authorization: Bearer {token}", "--warnings", "off"]
    for path in ENDLESS:
        arguments += ["--exclude-path", path]
    environment = {**os.environ, "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as place:
        return subprocess.run(arguments, cwd=place, env=environment, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemathesis", required=True, help="the program, as pip installed it")
    parser.add_argument("--leasehold", default=ROOT / "target/debug/leasehold", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=60, help="for each of the two runs")
    parser.add_argument("--seed", type=int, default=20260301)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(arguments.leasehold, pathlib.Path(folder))
        tenant = daemon.furnish()
        # It runs in a folder of its own, where a relative path would lead nowhere.
        program = str(pathlib.Path(arguments.schemathesis).absolute())
        good = True
        for who, token in (("an operator", daemon.token), ("a tenant's admin", tenant)):
            print(f"== as {who}, seed {arguments.seed}", flush=True)
            good &= fuzz(program, daemon, token, arguments.seconds, arguments.seed)
        alive = daemon.process.poll() is None
        ended = daemon.stop()
        if not alive or ended != 0:
            print(f"the daemon did not live through it (exit code {ended}):\n{daemon.said()}", file=sys.stderr)
        return 0 if good and alive and ended == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
