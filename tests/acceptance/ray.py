"""A real Ray with a head and a worker runs jobs, the real adapter reports them to a real daemon, and is interrupted.

In the end the usage must equal what Ray says about the same nodes and jobs, to the last decimal.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

from leasehold_site import Site, hours
from slurm_box import free_ports, until

HOUR_MS = 3_600_000
UNITS = ["uptime_hours", "gpu_hours", "job_hours"]


class RayBox:
    """Ray as child processes. `ray stop` would end every Ray of the machine, so it is not used."""

    def __init__(self, ray: pathlib.Path, folder: pathlib.Path):
        self.ray, self.folder = ray, folder
        folder.mkdir(parents=True)
        self.gcs, self.dashboard, self.agent, self.client = free_ports(4)
        self.url = f"http://127.0.0.1:{self.dashboard}"
        self.env = dict(os.environ, RAY_USAGE_STATS_ENABLED="0", RAY_health_check_period_ms="1000",
                        RAY_health_check_failure_threshold="3")
        self.processes: dict[str, subprocess.Popen] = {}

    def begin(self, name: str, *options) -> None:
        with open(self.folder / f"{name}.log", "ab") as log:
            command = [self.ray, "start", "--block", "--disable-usage-stats", *options]
            command = [str(part) for part in command]
            # A session of its own, so that all processes of the node can be ended together.
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=self.env,
                                                    start_new_session=True)

    def start(self) -> None:
        self.begin("head", "--head", f"--port={self.gcs}", "--num-cpus=2", f"--dashboard-port={self.dashboard}",
                   f"--temp-dir={self.folder}/tmp", f"--dashboard-agent-listen-port={self.agent}",
                   f"--ray-client-server-port={self.client}", "--min-worker-port=0", "--max-worker-port=0")
        until("the dashboard answers", lambda: self.is_up("head"))
        self.begin("worker", f"--address=127.0.0.1:{self.gcs}", "--num-cpus=1", "--num-gpus=2",
                   "--min-worker-port=0", "--max-worker-port=0")
        until("the worker is there", lambda: len(self.nodes()) == 2)

    def is_up(self, name: str) -> bool:
        assert self.processes[name].poll() is None, (self.folder / f"{name}.log").read_text()
        try:
            return len(self.nodes()) > 0
        except OSError:
            return False

    def get(self, path: str):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def nodes(self) -> list[dict]:
        return self.get("/api/v0/nodes?detail=true&limit=10000")["data"]["result"]["result"]

    def jobs(self) -> list[dict]:
        return [job for job in self.get("/api/jobs/") if job["type"] == "SUBMISSION"]

    def submit(self, entrypoint: str, metadata: dict) -> str:
        body = json.dumps({"entrypoint": entrypoint, "metadata": metadata}).encode()
        request = urllib.request.Request(self.url + "/api/jobs/", body)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["submission_id"]

    def end(self, name: str) -> None:
        """Ends a node with all its processes, which are those of the session that was started for it."""
        process = self.processes.pop(name)
        for signal in (15, 9):
            try:
                os.killpg(process.pid, signal)
            except ProcessLookupError:
                break
            time.sleep(3 if signal == 15 else 0)
        process.wait(timeout=30)

    def stop(self) -> None:
        for name in list(self.processes)[::-1]:
            self.end(name)


def slices(start: int, end: int) -> list[int]:
    """Milliseconds in each hour of UTC from start to end."""
    found = []
    while start < end:
        to = min((start // HOUR_MS + 1) * HOUR_MS, end)
        found.append(to - start)
        start = to
    return found


def in_hours(start: int, end: int, times: int = 1):
    return sum(hours(part * times, HOUR_MS) for part in slices(start, end))


def expected_jobs(box: RayBox) -> dict:
    """The ended jobs by what Ray says; a job without a known project is the owner's."""
    sums: dict = {}
    for job in box.jobs():
        project = job["metadata"].get("project")
        key = (project if project in ("lattice", "optics") else "lattice", "job_hours")
        sums[key] = sums.get(key, 0) + in_hours(job["start_time"], job["end_time"])
    return sums


def check(box: RayBox, site: Site) -> None:
    section = f"""
ray:
  cluster: box
  dashboard: {box.url}
  workers: [uptime_hours, gpu_hours]
  projects: {{ lattice: lattice, optics: optics }}
  gone_after: 3s
"""
    site.configure(time.time() - 3600, section)
    site.begin_adapter("leasehold-ray")
    box.submit("sleep 3", {"project": "lattice", "user": "ada"})
    box.submit("sleep 5", {"project": "optics", "user": "ada"})
    box.submit("false", {"project": "unheard-of"})
    until("all jobs end", lambda: all(job["status"] in ("SUCCEEDED", "FAILED") for job in box.jobs()))
    for _ in range(3):
        site.kill_adapter()
        site.begin_adapter("leasehold-ray")
        time.sleep(0.5)
    until("the jobs are counted", lambda: expected_jobs(box).items() <= site.totals().items(), 60)
    print("jobs were counted once, while the adapter was killed three times")

    site.kill()
    box.end("worker")
    until("Ray notices that the worker died", lambda: any(node["state"] == "DEAD" for node in box.nodes()))
    time.sleep(2)
    site.start()
    worker = next(node for node in box.nodes() if node["state"] == "DEAD")
    start, end = worker["start_time_ms"], worker["end_time_ms"]
    expected = {**expected_jobs(box), ("lattice", "gpu_hours"): in_hours(start, end, 2)}
    until("the worker is counted", lambda: expected.items() <= site.totals().items(), 60)
    print("the worker died while the daemon was down, and was counted to its end")

    site.kill_adapter()
    shutil.rmtree(site.folder / "state")
    again = site.once("leasehold-ray")
    assert again.returncode == 0 and "recorded=0" in again.stderr, again.stderr
    assert expected.items() <= site.totals().items(), site.totals()
    print("the state was lost, and nothing was counted twice")

    # The head goes while nobody looks: it is billed up to where it was last seen.
    box.end("head")
    time.sleep(3)
    things = json.loads((site.folder / "state" / "state.json").read_text())["memory"]["things"]
    head = next(thing for thing in things.values() if "head" in thing["kind"])
    for report in ("recorded=", "dashboard_failed"):
        gone = site.once("leasehold-ray")
        assert report in gone.stderr, gone.stderr
    uptime = in_hours(head["start_ms"], head["until_ms"]) + in_hours(start, end)
    assert site.totals()[("lattice", "uptime_hours")] == uptime, site.totals()
    print("the head was billed up to where it was last seen")
    for (project, unit), quantity in sorted(site.totals().items()):
        print(f"  {project:8} {unit:12} {quantity}")
    assert not (site.folder / "state" / "refused.jsonl").exists()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder with the built programs")
    parser.add_argument("--ray", type=pathlib.Path, required=True, help="the program `ray`")
    arguments = parser.parse_args()
    # Ray makes sockets in its folder, whose paths must be short.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lr-"))
    box, site = RayBox(arguments.ray.absolute(), folder / "ray"), None
    try:
        box.start()
        print("Ray runs:", box.get("/api/version")["ray_version"])
        site = Site(arguments.programs.resolve(), folder / "leasehold", "ray", UNITS)
        check(box, site)
    except BaseException:
        for log in folder.glob("*/*.log"):
            print(f"== {log.name}\n{log.read_text(errors='replace')[-1500:]}")
        raise
    finally:
        if site:
            site.stop()
        box.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print("usage equals what Ray says")


if __name__ == "__main__":
    main()
