"""The daemon that `cargo build` made, on a port that stays the same when it is killed and started again."""

import decimal
import json
import os
import pathlib
import subprocess
import time
import urllib.error
import urllib.request

from slurm_box import free_ports, until


def hours(seconds, per: int = 3600) -> decimal.Decimal:
    """Hours with nine decimals, rounded half up: what an adapter has to report."""
    exact = decimal.Decimal(seconds) / decimal.Decimal(per)
    return exact.quantize(decimal.Decimal("0.000000001"), rounding=decimal.ROUND_HALF_UP)


class Site:
    """A daemon with a tenant `physics`, its projects `lattice` and `optics`, and a runtime `rt` of `lattice`."""

    def __init__(self, programs: pathlib.Path, folder: pathlib.Path, backend: str, units: list[str]):
        self.programs, self.folder = programs, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"
        self.adapter: subprocess.Popen | None = None
        self.start()
        self.post("tenants", {"name": "physics"})
        for name in ("lattice", "optics"):
            self.post("projects", {"name": name, "tenant": "physics"})
        self.post("users", {"name": "ada", "tenant": "physics"})
        self.post("apps", {"slug": backend, "origin": "internal", "usage_units": units})
        self.post("app-instances", {"name": "rt", "project": "lattice", "tenant": "physics", "app": backend,
                                    "control_plane_scope": "tenant", "runtime_backend": backend})
        token = self.post("tokens", {"name": "adapter", "role": "app_operator", "tenant": "physics",
                                     "app_instances": ["rt"]})["secret"]
        (folder / "token").write_text(token)
        (folder / "token").chmod(0o600)

    def start(self) -> None:
        with open(self.folder / "daemon.log", "ab") as log:
            listen = self.url.removeprefix("http://")
            command = [self.programs / "leasehold", "serve", "--data", self.folder / "data", "--listen", listen]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        until("the daemon answers", self.is_ready, 60)
        self.token = (self.folder / "data" / "operator.token").read_text().strip()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, "the daemon ended: " + (self.folder / "daemon.log").read_text()
        try:
            return urllib.request.urlopen(self.url + "/healthz", timeout=2).status == 200
        except OSError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def call(self, path: str, body: dict | None = None) -> dict:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", data)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error

    def post(self, path: str, body: dict) -> dict:
        return self.call(path, body)

    def totals(self) -> dict[tuple[str, str], decimal.Decimal]:
        """What was reported, by project and unit."""
        report = self.call("usage?from=2020-01-01T00:00:00Z&by=project")
        sums: dict = {}
        for line in report["reported"]:
            key = (line["project"], line["usage_unit"])
            sums[key] = sums.get(key, 0) + decimal.Decimal(line["quantity"])
        return sums

    def configure(self, begin: float, more: str, every: str = "1s") -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin))
        (self.folder / "config.yaml").write_text(f"""
leasehold:
  url: {self.url}
  token_file: {self.folder}/token
  app_instance: rt
  begin: {stamp}
  state: {self.folder}/state
  every: {every}
  patience: 2s
  users: {{ root: ada }}
{more}""")

    def begin_adapter(self, program: str, env: dict | None = None) -> None:
        with open(self.folder / "adapter.log", "ab") as log:
            command = [self.programs / program, "--config", self.folder / "config.yaml"]
            self.adapter = subprocess.Popen(command, stderr=log, env=env or dict(os.environ))

    def kill_adapter(self) -> None:
        self.adapter.kill()
        self.adapter.wait()
        self.adapter = None

    def once(self, program: str, env: dict | None = None) -> subprocess.CompletedProcess:
        command = [self.programs / program, "--config", self.folder / "config.yaml", "--once"]
        return subprocess.run(command, env=env or dict(os.environ), capture_output=True, text=True)

    def stop(self) -> None:
        if self.adapter:
            self.kill_adapter()
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)
