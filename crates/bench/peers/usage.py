"""The peers' side of the usage questions: DuckDB, polars and ClickHouse (chdb).

The bench runs this as a child process, in a virtual environment made from
requirements.txt:

    usage.py prepare --leases N --dir DIR
    usage.py ask --dir DIR --system duckdb|polars|chdb --question QUESTION
                 [--windows W] [--seed S] [--reps R] [--warmup K] [--form FORM] [--check]
    usage.py windows --windows W --seed S

`prepare` makes the data set and loads it into each system, and prints one JSON
line per system. What DIR already holds for the same N is kept. `ask` puts one
question to one system in a fresh process and prints one JSON line. `windows`
prints the windows, one "start end" per line, for comparison with the bench's.

The questions
    window      usage per (tenant, resource) over each window
    tenant0     the same for tenant 0 alone, the largest
    tenant99    the same for tenant 99 alone, a middling one
    node        usage per (node, resource) over each window
    hourly      usage per (tenant, resource, hour of the month) over the month
    peak        the highest capacity held at once, per (tenant, resource)

Usage is capacity times seconds held. A lease is held over [start, end), so one
that ends in the second in which another starts does not overlap it. A month is
[T0, T0 + 2592000); leases start inside it and may end after it.

The data set (all arithmetic on unsigned 64-bit integers, wrapping)
    mix(z)       z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
                 z = (z ^ z>>27) * 0x94D049BB133111EB
                 z ^ z>>31
    u(i, j)      mix(20260101 + (8i + j + 1) * 0x9E3779B97F4A7C15), for lease i
    below(v, n)  ((v >> 32) * n) >> 32, a number in 0..n-1 for n up to 2^32
    tenant       the first k with cum[k] > below(u(i,0), cum[999]), where cum is
                 the running sum of floor(10^8 / (k+1)) for k in 0..999
    resource     below(u(i,1), 5)
    tier         1 + below(u(i,2), 3) for resource 0, and 0 for the others
    capacity     1 + below(u(i,3), 64)
    start        T0 + below(u(i,4), 2592000), T0 = 1767225600
    end          start + q[k] + ((q[k+1] - q[k]) * f >> 20), with v = u(i,5),
                 k = v >> 52, f = (v >> 32) & 0xFFFFF, q = durations.csv
    node         below(u(i,6), 1000)
    checksum     SHA-256 over the leases in order of (start, lease), each as seven
                 little-endian i64: lease, tenant, resource, tier, capacity,
                 start, end

The windows: window k of seed S, for k = 0, 1, 2, ...
    u_j(k)       mix(S + (2k + j + 1) * 0x9E3779B97F4A7C15), for j = 0, 1
    start        T0 + below(u_0(k), 2592000 - 115200)
    length       72000 + below(u_1(k), 43201), that is 20 to 32 hours
so every window lies inside the month.
    seed 1, window 0    1768628859 to 1768733077
    seed 1, window 1    1769630579 to 1769721775
    seed 7, window 59   1768130268 to 1768216953

The hash of the answers: SHA-256 over the answer to each window in turn (to the
one run, for `hourly` and `peak`). An answer is its rows in ascending order of
their keys, without those of value 0, each row its columns as little-endian i64:
tenant, resource, value; or tenant, resource, hour, value; or node, resource,
value.

What is timed. A window is timed until its rows are in this process's memory.
Windows W, W+1, ... (K of them, 8 unless told) are asked first and neither timed
into `times_s` nor hashed: ClickHouse compiles a query the fourth time it sees it,
which costs 40 to 120 ms once. `hourly` and `peak` are timed until the result is held
inside the system: a temporary table, a memory table, a frame; once for `first_s`
and then R times for `times_s`. Sorting and hashing are never timed.

The forms. Each system holds the leases twice: in order of (tenant, start) and in
order of start. A question goes to the form in which that system answers it
fastest (BEST), unless --form says otherwise. Over the form in order of time, a
window is also bounded from below by the longest lease's length, which changes no
answer and spares the system most of the month.

--check asks over the reference window (1768367843 to 1768462110) in place of
the seeded ones and compares with the hashes known for ten million leases; the
exit status is 1 when one differs.
"""

import argparse
import hashlib
import json
import math
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

T0 = 1767225600
MONTH = 30 * 86400
T1 = T0 + MONTH
HOUR = 3600
SEED = 20260101
GOLD = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
REFERENCE_WINDOW = (1768367843, 1768462110)
REFERENCE_LEASES = 10_000_000
REFERENCE_DATA = "2a9802fbabb0f22d0a4405590c6d1492a29b05da8a2fc0d422d1d98ef7089c80"
REFERENCE = {
    "window": "93d51881f6b92e34c18bed935ac2c08c5d4fade93e51e3169010593f384785b6",
    "tenant0": "f6167866c444fe2adb20fe37bc603e0867acd8b6df4cbf636a11f69716508e6b",
    "tenant99": "bc780b36a98e3266941d3cef0b0420f3be5a95ed959df9675932ade6207dfc4e",
    "hourly": "629f801d8583efc4a562409a317427f79346fae7587970173893736a10382a90",
    "peak": "460b4642319cb156db2fe111bc7164671cf9e2c6c2348eca4f74e307b15718d4",
}

# What the stored files look like; a change here makes `prepare` load again.
LAYOUT = 1
COLUMNS = ["lease", "tenant", "resource", "tier", "capacity", "node", "start_ts", "end_ts"]
# Seconds fit i32 in the data set's month, and a narrow column is less to read.
TYPES = ["i4", "i2", "i1", "i1", "i2", "i2", "i4", "i4"]

ONE_TENANT = {"tenant0": 0, "tenant99": 99}
WINDOWED = ("window", "tenant0", "tenant99", "node")
QUESTIONS = WINDOWED + ("hourly", "peak")


# The data set ---------------------------------------------------------------


def mix(z):
    """The splitmix64 finaliser, over an array of u64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def below(v, n):
    return (((v >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.int64)


def stream(seed, index):
    """The numbers of a seed's stream at an array of u64 positions, counted from 0."""
    return mix(np.uint64(seed & MASK) + (index + np.uint64(1)) * np.uint64(GOLD))


def windows(count, seed, first=0):
    """Windows first..first+count of a seed, as (start, end) pairs."""
    k = np.arange(first, first + count, dtype=np.uint64) * np.uint64(2)
    start = T0 + below(stream(seed, k), MONTH - 115200)
    length = 72000 + below(stream(seed, k + np.uint64(1)), 43201)
    return list(zip(start.tolist(), (start + length).tolist()))


def generate(count):
    """The leases in order of (start, lease), one array per column."""
    durations = np.loadtxt(Path(__file__).with_name("durations.csv"), dtype=np.int64)
    shares = np.cumsum(10**8 // np.arange(1, 1001, dtype=np.int64))
    columns = [np.empty(count, dtype=t) for t in TYPES]
    for low in range(0, count, 1 << 19):
        i = np.arange(low, min(low + (1 << 19), count), dtype=np.uint64)
        u = lambda j: stream(SEED, i * np.uint64(8) + np.uint64(j))
        resource = below(u(1), 5)
        start = T0 + below(u(4), MONTH)
        v = u(5)
        k = (v >> np.uint64(52)).astype(np.int64)
        f = ((v >> np.uint64(32)) & np.uint64(0xFFFFF)).astype(np.int64)
        part = [
            i,
            np.searchsorted(shares, below(u(0), int(shares[-1])), side="right"),
            resource,
            np.where(resource == 0, 1 + below(u(2), 3), 0),
            1 + below(u(3), 64),
            below(u(6), 1000),
            start,
            start + durations[k] + (((durations[k + 1] - durations[k]) * f) >> 20),
        ]
        for column, values in zip(columns, part):
            column[low : low + len(i)] = values
    order = np.argsort(columns[6], kind="stable")
    return dict(zip(COLUMNS, (c[order] for c in columns)))


def checksum(leases):
    """The SHA-256 by which the data set is known; the node is no part of it."""
    known = [leases[c] for c in COLUMNS if c != "node"]
    digest = hashlib.sha256()
    for low in range(0, len(known[0]), 1 << 19):
        part = [c[low : low + (1 << 19)].astype("<i8") for c in known]
        digest.update(np.stack(part, axis=1).tobytes())
    return digest.hexdigest()


# The systems ----------------------------------------------------------------
#
# Each has load(folder, parquet), which makes its own form of the leases, and gives
# its size where that is not the folder's. Opened on that folder, it has
# window(question, w0, w1), which gives the answer's columns; hold(question), which
# leaves the answer inside the system; and held(), which gives the columns of that.
#
# Two things make the questions over the month cheaper than their plainest wording,
# and each system has them where they help it. `hourly`: a lease's first hour needs
# no list of hours, and most leases have no other (DuckDB, ClickHouse). `peak`: a
# change of level packed into one integer, time * 256 + 64 + change, sorts as (time,
# change) would, so that at one second the ends come before the starts (all three).

FIRST_HOUR = f"(start_ts - {T0}) // {HOUR}"
LAST_HOUR = f"(least(end_ts, {T1}) - 1 - {T0}) // {HOUR}"
FIRST_INT_DIV = f"intDiv(start_ts - {T0}, {HOUR})"
LAST_INT_DIV = f"intDiv(least(end_ts, {T1}) - 1 - {T0}, {HOUR})"


def keys_of(question):
    return ("node", "resource") if question == "node" else ("tenant", "resource")


def condition(question, form, w0, w1, longest):
    terms = [f"start_ts < {w1}", f"end_ts > {w0}"]
    if form == "time":
        terms.append(f"start_ts > {w0 - longest}")
    if question in ONE_TENANT:
        terms.append(f"tenant = {ONE_TENANT[question]}")
    return " and ".join(terms)


class Duckdb:
    forms = ("tenant", "time")

    @staticmethod
    def load(folder, parquet):
        import duckdb

        for form, order in (("tenant", "tenant, start_ts"), ("time", "start_ts")):
            con = duckdb.connect(str(folder / f"{form}.duckdb"))
            con.execute(f"create table l as select * from '{parquet}' order by {order}")
            con.close()

    def __init__(self, folder, form, longest):
        import duckdb

        self.form, self.longest = form, longest
        self.con = duckdb.connect(str(folder / f"{form}.duckdb"), read_only=True)
        self.con.execute("set memory_limit = '5GB'")

    def columns(self, sql):
        return list(self.con.execute(sql).fetchnumpy().values())

    def window(self, question, w0, w1):
        keys = ", ".join(keys_of(question))
        return self.columns(
            f"""select {keys},
                sum(capacity * (least(end_ts, {w1}) - greatest(start_ts, {w0})))::bigint
            from l where {condition(question, self.form, w0, w1, self.longest)}
            group by {keys}"""
        )

    def hold(self, question):
        self.con.execute("create or replace temp table r as " + getattr(self, question))

    def held(self):
        return self.columns("select * from r")

    hourly = f"""
        select tenant, resource, h, sum(v)::bigint v
        from (
            select tenant, resource, {FIRST_HOUR} h,
                capacity * (least(end_ts, {T0} + ({FIRST_HOUR} + 1) * {HOUR}) - start_ts) v
            from l
            union all
            select tenant, resource, h,
                capacity * (least(e, {T0} + (h + 1) * {HOUR}) - ({T0} + h * {HOUR}))
            from (
                select tenant, resource, capacity, least(end_ts, {T1}) e,
                    unnest(range({FIRST_HOUR} + 1, {LAST_HOUR} + 1))::int h
                from l where {LAST_HOUR} > {FIRST_HOUR}))
        group by tenant, resource, h"""

    peak = """
        select g // 5 tenant, g % 5 resource, max(level)::bigint v
        from (
            select g, sum((k & 255) - 64) over (partition by g order by k rows unbounded preceding) level
            from (
                select tenant * 5 + resource g, start_ts::bigint * 256 + 64 + capacity k from l
                union all
                select tenant * 5 + resource, end_ts::bigint * 256 + 64 - capacity from l))
        group by g"""


class Chdb:
    forms = ("tenant", "time")

    @staticmethod
    def load(folder, parquet):
        from chdb import session

        s = session.Session(str(folder))
        s.query("create database b")
        for form, order in (("tenant", "tenant, start_ts"), ("time", "start_ts")):
            s.query(
                f"""create table b.{form} (lease Int32, tenant Int16, resource Int8, tier Int8,
                    capacity Int16, node Int16, start_ts Int32, end_ts Int32,
                    index ends end_ts type minmax granularity 1)
                engine = MergeTree order by ({order})"""
            )
            s.query(f"insert into b.{form} select * from file('{parquet}', Parquet)")
            s.query(f"optimize table b.{form} final")
        # The folder still has the parts that were merged away.
        size = s.query("select sum(bytes_on_disk) from system.parts where active and database = 'b'", "CSV")
        size = int(size.bytes())
        s.close()
        return size

    def __init__(self, folder, form, longest):
        from chdb import session

        self.form, self.longest = form, longest
        self.session = session.Session(str(folder))

    def columns(self, sql, *types):
        raw = self.session.query(sql, "RowBinary").bytes()
        rows = np.frombuffer(raw, dtype=[(str(n), t) for n, t in enumerate(types)])
        return [rows[n] for n in rows.dtype.names]

    def window(self, question, w0, w1):
        keys = ", ".join(keys_of(question))
        return self.columns(
            f"""select {keys},
                toInt64(sum(capacity * (least(end_ts, {w1}) - greatest(start_ts, {w0}))))
            from b.{self.form} where {condition(question, self.form, w0, w1, self.longest)}
            group by {keys}""",
            "<i2", "<i1", "<i8",
        )

    def hold(self, question):
        self.keys = ["tenant", "resource"] + ["h"] * (question == "hourly")
        sql = getattr(self, question).replace("from l", f"from b.{self.form}")
        self.session.query("create or replace table b.r engine = Memory as " + sql)

    def held(self):
        cast = ", ".join(f"toInt64({c})" for c in self.keys + ["v"])
        columns = self.columns(f"select {cast} from b.r", *["<i8"] * (len(self.keys) + 1))
        self.session.query("drop table b.r")
        return columns

    hourly = f"""
        select tenant, resource, h, sum(v) v
        from (
            select tenant, resource, toUInt32({FIRST_INT_DIV}) h,
                capacity * (least(end_ts, {T0} + ({FIRST_INT_DIV} + 1) * {HOUR}) - start_ts) v
            from l
            union all
            select tenant, resource, h,
                capacity * (least(e, {T0} + (h + 1) * {HOUR}) - ({T0} + h * {HOUR})) v
            from (
                select tenant, resource, capacity, least(end_ts, {T1}) e,
                    arrayJoin(range(toUInt32({FIRST_INT_DIV} + 1), toUInt32({LAST_INT_DIV} + 1))) h
                from l where {LAST_INT_DIV} > {FIRST_INT_DIV}))
        group by tenant, resource, h"""

    peak = """
        select tenant, resource,
            arrayMax(arrayCumSum(arrayMap(k -> toInt32(bitAnd(k, 255)) - 64, arraySort(groupArray(k))))) v
        from (
            select tenant, resource,
                arrayJoin([toInt64(start_ts) * 256 + 64 + capacity, toInt64(end_ts) * 256 + 64 - capacity]) k
            from l)
        group by tenant, resource"""


class Polars:
    # "parquet" is the file in order of start, scanned; the others are frames in memory.
    forms = ("tenant", "time", "parquet")

    @staticmethod
    def load(folder, parquet):
        import polars as pl

        leases = pl.read_parquet(parquet)
        leases.write_parquet(folder / "time.parquet", row_group_size=100_000)
        leases.sort("tenant", "start_ts").write_parquet(folder / "tenant.parquet", row_group_size=100_000)

    def __init__(self, folder, form, longest):
        import polars as pl

        self.pl, self.form, self.longest = pl, form, longest
        if form == "parquet":
            self.lazy = pl.scan_parquet(folder / "time.parquet")
            return
        self.frame = pl.read_parquet(folder / f"{form}.parquet").rechunk()
        self.starts = self.frame["start_ts"].to_numpy()
        if form == "tenant":
            self.edges = np.searchsorted(self.frame["tenant"].to_numpy(), np.arange(1001, dtype=np.int16)).tolist()
        self.lazy = self.frame.lazy()

    def rows_of(self, question, w0, w1):
        """The frame, or the run of it outside which no lease can count."""
        if self.form == "parquet":
            return self.lazy
        low, high = 0, len(self.frame)
        if self.form == "tenant":
            if question not in ONE_TENANT:
                return self.lazy
            low, high = self.edges[ONE_TENANT[question] :][:2]
        bounds = np.array([w0 - self.longest, w1], dtype=self.starts.dtype)
        first, last = np.searchsorted(self.starts[low:high], bounds).tolist()
        return self.frame.slice(low + first, last - first).lazy()

    def window(self, question, w0, w1):
        pl, c = self.pl, self.pl.col
        keep = (c("start_ts") < w1) & (c("end_ts") > w0)
        if self.form == "parquet":
            keep &= c("start_ts") > w0 - self.longest
        if question in ONE_TENANT:
            keep &= c("tenant") == ONE_TENANT[question]
        held = c("end_ts").clip(upper_bound=w1) - c("start_ts").clip(lower_bound=w0)
        usage = (c("capacity").cast(pl.Int32) * held).cast(pl.Int64).sum()
        rows = self.rows_of(question, w0, w1).filter(keep)
        answer = rows.group_by(keys_of(question)).agg(v=usage).collect()
        return [answer[name].to_numpy() for name in answer.columns]

    def hold(self, question):
        self.answer = getattr(self, question)()

    def held(self):
        return [self.answer[name].to_numpy() for name in self.answer.columns]

    def hourly(self):
        pl, c = self.pl, self.pl.col
        end = pl.min_horizontal("end_ts", pl.lit(T1, dtype=pl.Int32))
        rows = self.lazy.select("tenant", "resource", "capacity", "start_ts", e=end)
        hours = pl.int_ranges((c("start_ts") - T0) // HOUR, (c("e") - 1 - T0) // HOUR + 1, dtype=pl.Int32)
        rows = rows.with_columns(h=hours).explode("h")
        held = pl.min_horizontal("e", T0 + (c("h") + 1) * HOUR) - pl.max_horizontal("start_ts", T0 + c("h") * HOUR)
        usage = (c("capacity").cast(pl.Int32) * held).cast(pl.Int64).sum()
        return rows.group_by("tenant", "resource", "h").agg(v=usage).collect()

    def peak(self):
        pl, c = self.pl, self.pl.col
        capacity = c("capacity").cast(pl.Int64)
        group = (c("tenant").cast(pl.Int64) * 5 + c("resource")) * 2**40

        def changes(when, change):
            return self.lazy.select(k=group + (c(when).cast(pl.Int64) - T0) * 256 + 64 + change)

        order = pl.concat([changes("start_ts", capacity), changes("end_ts", -capacity)]).sort("k")
        # A group's changes add up to 0, so one running sum serves all the groups.
        levels = order.select(g=(c("k") // 2**40).cast(pl.Int32), level=((c("k") & 255) - 64).cum_sum())
        peaks = levels.group_by("g").agg(v=c("level").max())
        return peaks.select(tenant=c("g") // 5, resource=c("g") % 5, v="v").collect()


SYSTEMS = {"duckdb": Duckdb, "polars": Polars, "chdb": Chdb}

# The form in which each system was fastest, by question.
BEST = {
    "duckdb": dict(window="time", node="time", tenant0="tenant", tenant99="tenant", hourly="tenant", peak="tenant"),
    "chdb": dict(window="time", node="time", tenant0="tenant", tenant99="tenant", hourly="tenant", peak="tenant"),
    "polars": dict(window="time", node="time", tenant0="tenant", tenant99="tenant", hourly="tenant", peak="tenant"),
}


# The commands ---------------------------------------------------------------


def read_manifest(folder):
    try:
        return json.loads((folder / "manifest.json").read_text())
    except FileNotFoundError:
        return {}


def write_manifest(folder, manifest):
    part = folder / "manifest.part"
    part.write_text(json.dumps(manifest))
    part.rename(folder / "manifest.json")


def say(**fields):
    print(json.dumps(fields), flush=True)


def size_of(folder):
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def memory_mib():
    """The most memory this process has held."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return None


def prepare(args):
    folder = args.dir
    folder.mkdir(parents=True, exist_ok=True)
    parquet = folder / "leases.parquet"
    manifest = read_manifest(folder)
    if (manifest.get("leases"), manifest.get("layout")) != (args.leases, LAYOUT) or not parquet.exists():
        for name in SYSTEMS:
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / "manifest.json").unlink(missing_ok=True)
        began = time.perf_counter()
        sha256, longest = write_leases(args.leases, parquet)
        manifest = dict(
            leases=args.leases, layout=LAYOUT, sha256=sha256, longest=longest,
            generate_s=round(time.perf_counter() - began, 3), systems={},
        )
        write_manifest(folder, manifest)
    for name in SYSTEMS:
        cached = name in manifest["systems"]
        if not cached:
            shutil.rmtree(folder / name, ignore_errors=True)
            (folder / name).mkdir()
            # A process of its own, so that no system's memory stays behind.
            child = [sys.executable, __file__, "load", "--dir", folder, "--system", name]
            done = subprocess.run(child, check=True, stdout=subprocess.PIPE)
            manifest["systems"][name] = json.loads(done.stdout)
            write_manifest(folder, manifest)
        say(
            system=name, **manifest["systems"][name], leases=args.leases, sha256=manifest["sha256"],
            generate_s=manifest["generate_s"], cached=cached,
        )


def write_leases(count, parquet):
    import pyarrow as pa
    import pyarrow.parquet as pq

    leases = generate(count)
    sha256 = checksum(leases)
    if count == REFERENCE_LEASES and sha256 != REFERENCE_DATA:
        sys.exit(f"the data set's checksum is {sha256}, not {REFERENCE_DATA}")
    longest = int((leases["end_ts"] - leases["start_ts"]).max())
    part = parquet.with_suffix(".part")
    pq.write_table(pa.table(leases), part, compression="zstd", row_group_size=500_000)
    part.rename(parquet)
    return sha256, longest


def load(args):
    began = time.perf_counter()
    folder = args.dir / args.system
    size = SYSTEMS[args.system].load(folder, args.dir / "leases.parquet")
    load_s = round(time.perf_counter() - began, 3)
    say(load_s=load_s, bytes=size or size_of(folder), version=version(args.system))


def rows_of_answer(columns):
    """An answer's rows as the hash takes them."""
    rows = np.stack([np.asarray(c).astype("<i8") for c in columns], axis=1)
    rows = rows[rows[:, -1] != 0]
    return rows[np.lexsort(rows[:, :-1].T[::-1])]


def ask(args):
    manifest = read_manifest(args.dir)
    if args.system not in manifest.get("systems", {}):
        sys.exit(f"{args.dir} is not prepared for {args.system}")
    form = args.form or BEST[args.system][args.question]
    if form not in SYSTEMS[args.system].forms:
        sys.exit(f"{args.system} has no form {form}")
    began = time.perf_counter()
    system = SYSTEMS[args.system](args.dir / args.system, form, manifest["longest"])
    open_s = time.perf_counter() - began

    digest, rows, total, times = hashlib.sha256(), 0, 0, []

    def timed(call, *arguments):
        began = time.perf_counter()
        result = call(*arguments)
        times.append(time.perf_counter() - began)
        return result

    def take(columns):
        nonlocal rows, total
        answer = rows_of_answer(columns)
        digest.update(answer.tobytes())
        rows += len(answer)
        total += int(answer[:, -1].sum())

    if args.question in WINDOWED:
        asked = [REFERENCE_WINDOW] if args.check else windows(args.windows, args.seed)
        first = windows(args.warmup, args.seed, first=args.windows)
        for w in first:
            timed(system.window, args.question, *w)
        for w in asked:
            take(timed(system.window, args.question, *w))
        dropped = len(first)
    else:
        for _ in range(args.reps + 1):
            timed(system.hold, args.question)
        take(system.held())
        dropped = 1

    first_s, times = times[0], times[dropped:]
    ranked, sha256 = sorted(times), digest.hexdigest()
    reference = None
    if args.check and manifest["leases"] == REFERENCE_LEASES and args.question in REFERENCE:
        reference = sha256 == REFERENCE[args.question]
    say(
        system=args.system, question=args.question, form=form, leases=manifest["leases"],
        windows=len(times) if args.question in WINDOWED else None, seed=args.seed,
        times_s=[round(t, 6) for t in times],
        median_s=round(float(np.median(times)), 6),
        best_s=round(ranked[0], 6),
        p99_s=round(ranked[math.ceil(0.99 * len(ranked)) - 1], 6),
        first_s=round(first_s, 6), open_s=round(open_s, 6),
        rows=rows, sum=total, sha256=sha256, reference=reference,
        peak_mib=memory_mib(), version=version(args.system),
    )
    if reference is False:
        sys.exit(1)


def show_windows(args):
    for start, end in windows(args.windows, args.seed):
        print(start, end)


def at_least(low):
    def read(text):
        if int(text) < low:
            raise argparse.ArgumentTypeError(f"{text} is below {low}")
        return int(text)

    return read


def main():
    top = argparse.ArgumentParser(description="Usage questions put to DuckDB, polars and ClickHouse.")
    commands = top.add_subparsers(required=True)

    def command(name, run):
        made = commands.add_parser(name)
        made.set_defaults(run=run)
        return made

    c = command("prepare", prepare)
    c.add_argument("--leases", type=at_least(1), required=True)
    c.add_argument("--dir", type=lambda p: Path(p).resolve(), required=True)

    c = command("load", load)
    c.add_argument("--dir", type=Path, required=True)
    c.add_argument("--system", choices=SYSTEMS, required=True)

    c = command("ask", ask)
    c.add_argument("--dir", type=lambda p: Path(p).resolve(), required=True)
    c.add_argument("--system", choices=SYSTEMS, required=True)
    c.add_argument("--question", choices=QUESTIONS, required=True)
    c.add_argument("--windows", type=at_least(1), default=60)
    c.add_argument("--seed", type=at_least(0), default=1)
    c.add_argument("--reps", type=at_least(1), default=3)
    c.add_argument("--warmup", type=at_least(0), default=8)
    c.add_argument("--form")
    c.add_argument("--check", action="store_true")

    c = command("windows", show_windows)
    c.add_argument("--windows", type=at_least(1), required=True)
    c.add_argument("--seed", type=at_least(0), required=True)

    args = top.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
