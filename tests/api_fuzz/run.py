"""Schemathesis against a real daemon: no 5xx, no undocumented answer, whatever is sent.

The daemon is the one that `cargo build` made; it runs on a free port in a temporary folder and is gone afterwards.
A short cluster is made first, so that what is drawn meets something. `--seconds` bounds each run.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from real_daemon import Daemon  # noqa: E402

# What never ends is tried by its own tests.
ENDLESS = ["/api/v1/events"]
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance"
)


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
