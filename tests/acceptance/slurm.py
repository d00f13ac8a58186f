"""A real Slurm runs jobs, the real adapter reports them to a real daemon, and all three are interrupted.

In the end the usage must equal what sacct says, to the last decimal.
"""

import argparse
import os
import pathlib
import shutil
import tempfile
import time

import slurm_box
from leasehold_site import Site, hours
from slurm_box import SlurmBox, until

ACCOUNTS = {"lattice": "lattice", "optics": "optics"}


def gpus(tres: str) -> int:
    """GPUs by their total, which this Slurm accounts for."""
    amounts = dict(part.split("=") for part in tres.split(",") if part)
    return int(amounts.get("gres/gpu", 0))


def expected(box: SlurmBox) -> dict:
    """What has to be reported, by project and unit, from what sacct says now."""
    sums: dict = {}
    for row in box.sacct("DBIndex,Account,Start,End,ElapsedRaw,AllocTRES", "--starttime=2020-01-01"):
        _, account, start, end, seconds, tres = row
        if not (start.isdigit() and end.isdigit()) or int(seconds) == 0:
            continue
        project = ACCOUNTS.get(account, "lattice")
        for unit, times in (("job_hours", 1), ("gpu_hours", gpus(tres))):
            if times:
                key = (project, unit)
                sums[key] = sums.get(key, 0) + hours(int(seconds) * times)
    return sums


def is_quiet(box: SlurmBox) -> bool:
    """Whether no job waits or runs, also in the eyes of the database."""
    states = [state for (state,) in box.sacct("State", "--starttime=2020-01-01")]
    return box.run("squeue", "-h") == "" and not {"RUNNING", "PENDING"} & set(states)


def check(box: SlurmBox, site: Site) -> None:
    env = dict(box.env)
    begun = time.time()
    section = f"""
slurm:
  cluster: {box.cluster}
  sacct: {shutil.which('sacct')}
  accounts: {{ lattice: lattice, optics: optics }}
  correlation_from_comment: true
"""
    site.configure(begun - 60, section)
    site.begin_adapter("leasehold-slurm", env)

    comment = "leasehold:0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f10"
    box.submit("--gres=gpu:1", "--comment", comment, script="sleep 4")
    requeued = box.submit("--gpus=a100:2", "-A", "optics", script="sleep 8")
    cancelled = box.submit(script="sleep 600")
    never = box.submit("--begin=now+1hour", script="true")
    box.submit("--array=1-3", script="sleep 3")
    box.submit("-A", "stray", "--comment", "x\nbox|999|1|COMPLETED|optics|root|batch|1|2|1|cpu=1", script="sleep 2")
    until("the jobs run", lambda: "RUNNING" in [row[0] for row in box.sacct("State", "-j", requeued)])
    time.sleep(2)
    box.run("scontrol", "requeue", requeued)
    box.run("scontrol", "update", f"job={requeued}", "StartTime=now")
    box.run("scontrol", "suspend", cancelled)
    time.sleep(3)
    box.run("scontrol", "resume", cancelled)
    time.sleep(1)
    box.run("scancel", cancelled, never)
    print("jobs were requeued, suspended and cancelled")

    site.kill_adapter()
    box.end("slurmdbd")
    # What runs while the database cannot be reached is told to it later by the controller.
    box.submit("-A", "optics", script="sleep 2")
    failed = site.once("leasehold-slurm", env)
    assert failed.returncode == 1 and "sacct_failed" in failed.stderr, failed
    site.begin_adapter("leasehold-slurm", env)
    time.sleep(5)
    box.start_slurmdbd()
    print("slurmdbd was down, and the adapter was killed meanwhile")

    site.kill()
    time.sleep(3)
    site.start()
    for _ in range(5):
        site.kill_adapter()
        site.begin_adapter("leasehold-slurm", env)
        time.sleep(0.4)
    print("the daemon was killed, and the adapter five times")

    until("all jobs end", lambda: is_quiet(box), 300)
    until("usage equals what sacct says", lambda: site.totals() == expected(box) != {}, 60)
    indexes = [int(row[0]) for row in box.sacct("DBIndex", "--starttime=2020-01-01", "-j", requeued)]
    assert len(indexes) == 2, f"a requeued job has two runs: {indexes}"
    of_comment = site.call("timeline/0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f10")
    assert "usage.recorded" in str(of_comment), of_comment

    site.kill_adapter()
    shutil.rmtree(site.folder / "state")
    again = site.once("leasehold-slurm", env)
    assert again.returncode == 0 and "recorded=0" in again.stderr, again.stderr
    assert site.totals() == expected(box)
    print("the state was lost, and nothing was counted twice")

    # An administrator corrects the database: a run was a second longer.
    box.sql(f"UPDATE slurm_acct.{box.cluster}_job_table SET time_end = time_end + 1 WHERE job_db_inx = {indexes[0]}")
    again = site.once("leasehold-slurm", env)
    assert again.returncode == 0 and "corrected=2" in again.stderr, again.stderr
    assert site.totals() == expected(box)
    assert not (site.folder / "state" / "refused.jsonl").exists()
    print("a run that was changed in the database was superseded")
    for (project, unit), quantity in sorted(site.totals().items()):
        print(f"  {project:8} {unit:10} {quantity}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder with the built programs")
    programs = parser.parse_args().programs.resolve()
    if os.geteuid() != 0:
        raise SystemExit("slurmd starts the jobs of other users: run this as root")
    slurm_box.install()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="leasehold-slurm-"))
    box, site = SlurmBox(folder / "slurm"), None
    folder.chmod(0o755)
    try:
        box.start()
        print("Slurm runs:", box.run("sacct", "--version"))
        site = Site(programs, folder / "leasehold", "slurm", ["job_hours", "gpu_hours"])
        check(box, site)
    except BaseException:
        for log in folder.glob("**/*.log"):
            print(f"== {log.name}\n{log.read_text(errors='replace')[-1500:]}")
        raise
    finally:
        if site:
            site.stop()
        box.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print("usage equals what sacct says")


if __name__ == "__main__":
    main()
