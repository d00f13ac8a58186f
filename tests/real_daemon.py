"""The daemon that `cargo build` made, as a child process on a free port, for tests in Python."""

import json
import pathlib
import signal
import subprocess
import time
import urllib.request


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

    def document(self) -> dict:
        """The OpenAPI document that it serves."""
        with urllib.request.urlopen(self.url + "/api/v1/openapi.json") as answer:
            return json.load(answer)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)
