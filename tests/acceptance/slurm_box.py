"""A whole Slurm on this machine, in a folder of its own: munge, MariaDB, slurmdbd, slurmctld and one slurmd.

Everything listens on free ports of the loopback interface, and ends with the process that started it. It has to run as
root, because slurmd starts the jobs of other users.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import time

PACKAGES = ["slurmctld", "slurmd", "slurmdbd", "slurm-client", "munge", "mariadb-server"]
PROGRAMS = ["slurmctld", "slurmd", "slurmdbd", "sacct", "munged", "mariadbd"]
PATIENCE = 120


def install() -> None:
    """Installs what is missing, with apt."""
    if all(find(program) for program in PROGRAMS):
        return
    print("installing", " ".join(PACKAGES))
    quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES], check=True, env=quiet)


def find(program: str) -> str | None:
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


def free_ports(count: int) -> list[int]:
    listening = [socket.socket() for _ in range(count)]
    for one in listening:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in listening]
    for one in listening:
        one.close()
    return ports


def until(what: str, condition, seconds: float = PATIENCE):
    """Waits until the condition is true, and returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"it takes too long: {what}"
        time.sleep(0.2)


class SlurmBox:
    """The processes, and the commands of Slurm against them."""

    cluster = "box"

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.host = socket.gethostname().split(".")[0]
        self.processes: dict[str, subprocess.Popen] = {}
        self.ports = dict(zip(["mariadb", "dbd", "ctld", "slurmd"], free_ports(4)))
        for name in ["mysql", "spool", "state", "munge"]:
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        self.env = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))
        self.write_configuration()

    def write_configuration(self) -> None:
        folder, ports = self.folder, self.ports
        key = folder / "munge" / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (folder / "munge").chmod(0o711)
        munge = f"socket={folder}/munge/munge.sock"
        (folder / "slurmdbd.conf").write_text(f"""
AuthType=auth/munge
AuthInfo={munge}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports['dbd']}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports['mariadb']}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
""")
        (folder / "slurmdbd.conf").chmod(0o600)
        (folder / "slurm.conf").write_text(f"""
ClusterName={self.cluster}
SlurmctldHost={self.host}(127.0.0.1)
SlurmctldPort={ports['ctld']}
SlurmdPort={ports['slurmd']}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo={munge}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
DefMemPerNode=64
SwitchType=switch/none
JobRequeue=1
MinJobAge=10
KillWait=1
SchedulerParameters=bf_interval=1,sched_interval=1,requeue_setup_env_fail
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports['dbd']}
AccountingStoragePass={folder}/munge/munge.sock
AccountingStorageTRES=gres/gpu,gres/gpu:a100
AccountingStoreFlags=job_comment
AccountingStorageEnforce=associations
NodeName={self.host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=4096 Gres=gpu:a100:4 State=UNKNOWN
PartitionName=batch Nodes={self.host} Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:8
PartitionName=lent Nodes={self.host} MaxTime=60 State=UP OverSubscribe=FORCE:8
""")
        # Files stand for the devices: slurmd only looks whether they exist.
        for device in range(4):
            (folder / f"gpu{device}").touch()
        (folder / "gres.conf").write_text(f"NodeName={self.host} Name=gpu Type=a100 File={folder}/gpu[0-3]\n")
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def begin(self, name: str, *command, **more) -> subprocess.Popen:
        with open(self.folder / f"{name}.out", "ab") as out:
            arguments = [str(part) for part in command]
            process = subprocess.Popen(arguments, stdout=out, stderr=out, env=self.env, cwd=self.folder, **more)
        self.processes[name] = process
        return process

    def log(self, name: str) -> str:
        """The end of what a process wrote, to see why it did not start."""
        texts = [(self.folder / f"{name}.{end}") for end in ("out", "log")]
        return "\n".join(text.read_text(errors="replace")[-2000:] for text in texts if text.exists())

    def start(self) -> None:
        folder = self.folder
        self.begin("munged", find("munged"), "--foreground", "--force", f"--socket={folder}/munge/munge.sock",
                   f"--key-file={folder}/munge/munge.key", f"--pid-file={folder}/munge/munged.pid",
                   f"--seed-file={folder}/munge/seed", f"--log-file={folder}/munge/munged.log")
        shutil.chown(folder / "mysql", "mysql", "mysql")
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={folder}/mysql", "--user=mysql",
                        "--skip-test-db", "--auth-root-authentication-method=normal"],
                       check=True, stdout=subprocess.DEVNULL)
        self.begin("mariadbd", find("mariadbd"), "--no-defaults", f"--datadir={folder}/mysql", "--user=mysql",
                   f"--socket={folder}/mysql/sock", "--bind-address=127.0.0.1", f"--port={self.ports['mariadb']}",
                   f"--pid-file={folder}/mysql/pid", "--innodb-buffer-pool-size=64M", "--skip-name-resolve")
        until("MariaDB starts", lambda: self.sql("SELECT 1"))
        self.sql("CREATE USER 'slurm'@'%' IDENTIFIED BY 'slurm'; GRANT ALL ON slurm_acct.* TO 'slurm'@'%';")
        until("munge starts", lambda: (folder / "munge" / "munge.sock").exists())
        self.start_slurmdbd()
        self.run("sacctmgr", "-i", "add", "cluster", self.cluster)
        for account in ["lattice", "optics", "stray"]:
            self.run("sacctmgr", "-i", "add", "account", account, "Description=x", "Organization=x")
        self.run("sacctmgr", "-i", "add", "user", "root", "Account=lattice,optics,stray", "DefaultAccount=lattice")
        self.begin("slurmctld", find("slurmctld"), "-D", "-i", "-f", folder / "slurm.conf")
        self.begin("slurmd", find("slurmd"), "-D", "-N", self.host, "-f", folder / "slurm.conf")
        until("the node is idle", self.is_idle)

    def is_idle(self) -> bool:
        for name in ["slurmctld", "slurmd"]:
            assert self.processes[name].poll() is None, f"{name} ended: {self.log(name)}"
        found = subprocess.run(["sinfo", "-h", "-o", "%T"], env=self.env, capture_output=True, text=True)
        return "idle" in found.stdout

    def start_slurmdbd(self) -> None:
        process = self.begin("slurmdbd", find("slurmdbd"), "-D")

        def answers() -> bool:
            assert process.poll() is None, f"slurmdbd ended: {self.log('slurmdbd')}"
            asked = subprocess.run(["sacctmgr", "-n", "show", "cluster"], env=self.env, capture_output=True)
            return asked.returncode == 0

        until("slurmdbd answers", answers)

    def sql(self, text: str) -> bool:
        """Runs SQL as the root of the database; whether it could."""
        command = ["mariadb", "--no-defaults", f"--socket={self.folder}/mysql/sock", "-e", text]
        return subprocess.run(command, capture_output=True).returncode == 0

    def run(self, *command, **more) -> str:
        env = dict(self.env, **more)
        done = subprocess.run([str(part) for part in command], env=env, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        return done.stdout.strip()

    def submit(self, *options, script: str) -> str:
        """Submits a batch job, and returns its number."""
        return self.run("sbatch", "--parsable", "-o", "/dev/null", *options, "--wrap", script).split(";")[0]

    def sacct(self, columns: str, *options) -> list[list[str]]:
        table = self.run("sacct", "-X", "--allusers", "--duplicates", "--parsable2", "--noheader",
                         f"--format={columns}", *options, TZ="UTC", SLURM_TIME_FORMAT="%s")
        return [line.split("|") for line in table.splitlines()]

    def end(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        for name in ["slurmd", "slurmctld", "slurmdbd", "mariadbd", "munged"]:
            if name in self.processes:
                self.end(name)
