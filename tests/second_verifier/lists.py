"""The three lists of a proof file, how they are encoded, and what each record does to them.

Written from docs/reference/invoice-proof.md ("Lists"). What the page leaves open is marked with "ASSUMED".
The fold keeps more than the lists hold: leases and claims that are over stay known, because their usage is billed.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional

import verify as v
from records import KINDS, Sealed, currency, residual, signed
from verify import Malformed, Reader, option, seq

HELD, TEARING, FENCED, CLOSED = 1, 2, 3, 0
Instance = tuple[int, str, int]  # app, name, owner
Scope = tuple[int, int, int]  # app, tenant, app instance; -1 for none
Limit = tuple[int, int, int]  # project, app instance or -1, unit
NOT_ENDED, PLAIN, PREEMPTED, OWN_REQUEST, NODE_LOST, FAILED_START = range(6)
REVOKED_PLAIN, REVOKED_PREEMPTED, REVOKED_EARLIER_RULES, REVOKED_OWN, REVOKED_LOST = range(1, 6)
GUARANTEED = 3
REASON_PREEMPTED, REASON_NODE_LOST = 1, 5
PRICED_BY_FLAG = 4  # the rules version from which on sensitive leases are priced as guaranteed
FAILED_START_END = 7  # the attempt end of that name


# ---------------------------------------------------------------- writing

def varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def text(t: str) -> bytes:
    raw = t.encode()
    return varint(len(raw)) + raw


def some(value: Any, write: Callable[[Any], bytes]) -> bytes:
    return b"\0" if value is None else b"\1" + write(value)


def instant(n: int) -> bytes:
    return n.to_bytes(8, "little")


def scaled(n: int) -> bytes:
    """In the coarsest unit that is exact; zero in the first."""
    for unit, size in enumerate((10**9, 10**6, 10**3, 1)):
        if n % size == 0:
            return varint(n // size * 4 + unit)
    raise AssertionError("every number is a multiple of one")


def signed_bytes(n: int) -> bytes:
    return varint(2 * abs(n) + (n < 0))


def counted(rows: Iterable[bytes]) -> bytes:
    rows = list(rows)
    return varint(len(rows)) + b"".join(rows)


# ---------------------------------------------------------------- reading

def sorted_list(parse: Callable[[Reader], Any], key: Callable[[Any], Any]) -> Callable[[Reader], list]:
    def read(r: Reader) -> list:
        rows = [parse(r) for _ in range(r.varint())]
        keys = [key(row) for row in rows]
        if any(a >= b for a, b in zip(keys, keys[1:])):
            raise Malformed("a list that is not in ascending order")
        return rows
    return read


def first(row: tuple) -> Any:
    return row[0]


def whole(raw: bytes, parse: Callable[[Reader], Any]) -> Any:
    r = Reader(raw)
    value = parse(r)
    if r.pos != len(raw):
        raise Malformed(f"{len(raw) - r.pos} bytes left over")
    return value


def code_byte(what: str, highest: int) -> Callable[[Reader], int]:
    parse = v.enum(what, highest, 0)
    return lambda r: parse(r)[0]


def body_of(kind: int) -> Callable[[Reader], tuple[Any, bytes]]:
    """A body of a record without its length: what it says, and its bytes."""
    def parse(r: Reader) -> tuple[Any, bytes]:
        start = r.pos
        value = KINDS[kind][1](r)
        return value, r.data[start:r.pos]
    return parse


def card_body(r: Reader) -> tuple[Any, bytes]:
    raw = r.take(r.varint())
    return whole(raw, KINDS[22][1]), raw


CAPACITY = sorted_list(seq(v.CLASS, v.V64), first)


@dataclass
class Common:
    """What every bill depends on. Cards, policies, units and prices keep the bytes of their bodies."""
    opened: Optional[int] = None
    classes: dict[int, tuple] = field(default_factory=dict)  # name, kind, tier, quanta per unit, premium
    pools: dict[int, str] = field(default_factory=dict)
    cards: dict[int, tuple] = field(default_factory=dict)
    policies: dict[int, tuple] = field(default_factory=dict)
    units: dict[int, tuple] = field(default_factory=dict)
    prices: dict[int, tuple] = field(default_factory=dict)
    apps: dict[int, str] = field(default_factory=dict)
    instances: dict[int, Instance] = field(default_factory=dict)
    sharing: dict[Scope, tuple[dict, bytes]] = field(default_factory=dict)

    @classmethod
    def parse(cls, raw: bytes) -> "Common":
        def read(r: Reader) -> "Common":
            spec = seq(v.TEXT, v.enum("resource kind", 5), option(v.TEXT), v.V64, v.BOOL)
            return cls(
                option(v.INSTANT)(r), dict(sorted_list(seq(v.CLASS, spec), first)(r)),
                dict(sorted_list(seq(v.POOL, v.TEXT), first)(r)),
                {row[0][0]: row for row in sorted_list(card_body, lambda row: row[0][0])(r)},
                {row[0][0]: row for row in sorted_list(body_of(24), lambda row: row[0][0])(r)},
                {row[0]["unit"]: row for row in sorted_list(body_of(160), lambda row: row[0]["unit"])(r)},
                {row[0]["number"]: row for row in sorted_list(body_of(161), lambda row: row[0]["number"])(r)},
                dict(sorted_list(seq(v.V64, v.TEXT), first)(r)), read_instances(r), read_sharing(r))
        return whole(raw, read)

    def encode(self) -> bytes:
        specs = (varint(c) + text(s[0]) + bytes([s[1][0]]) + some(s[2], text) + varint(s[3]) + bytes([s[4]])
                 for c, s in sorted(self.classes.items()))
        return (some(self.opened, instant) + counted(specs) + names(self.pools)
                + counted(varint(len(raw)) + raw for _, (_, raw) in sorted(self.cards.items()))
                + b"".join(counted(raw for _, (_, raw) in sorted(t.items()))
                           for t in (self.policies, self.units, self.prices))
                + names(self.apps) + write_instances(self.instances) + write_sharing(self.sharing))

    def fold(self, r: Sealed) -> None:
        b = r.body
        if r.kind == 10:
            self.classes[b[0]] = b[1:]
        elif r.kind == 11:
            self.pools[b[0]] = b[1]
        elif r.kind == 12:
            self.pools.pop(b[0], None)
        elif r.kind == 22:
            self.cards[b[0]] = (b, r.raw_body)
        elif r.kind == 23:
            self.cards.pop(b[0], None)
        elif r.kind == 24:
            self.policies[b[0]] = (b, r.raw_body)
        elif r.kind == 160:
            self.units[b["unit"]] = (b, r.raw_body)
        elif r.kind == 161:
            self.prices[b["number"]] = (b, r.raw_body)
        elif r.kind == 162:
            self.apps[b["app"]] = b["slug"]
        elif r.kind == 163:
            self.apps.pop(b["app"], None)
            drop(self.sharing, lambda scope: scope[0] == b["app"])
        elif r.kind == 164:
            self.instances[b["instance"]] = (b["app"], b["name"], b["project"])
        elif r.kind == 165:
            self.instances.pop(b["instance"], None)
            drop(self.sharing, lambda scope: scope[2] == b["instance"])
        elif r.kind == 174:
            self.sharing[scope_of(b)] = (b, r.raw_body)
        elif r.kind == 140:
            self.opened = b["from"]


COMMON_KINDS = {10, 11, 12, 22, 23, 24, 160, 161, 162, 163, 140}
PLATFORM = 3


def is_common(r: Sealed, common: Common) -> bool:
    if r.kind == 164:
        return r.body["scope"] == PLATFORM
    if r.kind == 174 and r.body["tenant"] is None:
        return True
    return r.kind in COMMON_KINDS or r.kind in (165, 174) and r.body["instance"] in common.instances


def names(table: dict[int, str]) -> bytes:
    return counted(varint(k) + text(t) for k, t in sorted(table.items()))


def read_instances(r: Reader) -> dict[int, Instance]:
    return {i: tuple(rest) for i, *rest in sorted_list(seq(v.V64, v.V64, v.TEXT, v.PROJECT), first)(r)}


def write_instances(table: dict[int, Instance]) -> bytes:
    return counted(varint(i) + varint(app) + text(name) + varint(project)
                   for i, (app, name, project) in sorted(table.items()))


def scope_of(b: dict) -> Scope:
    """What a sharing policy is about: app, tenant, app instance; -1 for none, so that none comes first."""
    return (b["app"], *(-1 if b[name] is None else b[name] for name in ("tenant", "instance")))


def read_sharing(r: Reader) -> dict[Scope, tuple[dict, bytes]]:
    return {scope_of(row[0]): row for row in sorted_list(body_of(174), lambda row: scope_of(row[0]))(r)}


def write_sharing(table: dict[Scope, tuple[dict, bytes]]) -> bytes:
    return counted(raw for _, (_, raw) in sorted(table.items()))


def read_limit(r: Reader) -> tuple[Limit, int]:
    project, instance, unit, hard = seq(v.PROJECT, option(v.V64), v.V64, v.AMOUNT)(r)
    return (project, -1 if instance is None else instance, unit), hard


def write_limit(of: Limit, hard: int) -> bytes:
    return (varint(of[0]) + some(None if of[1] < 0 else of[1], varint) + varint(of[2]) + scaled(hard))


def drop(table: dict, fits: Callable[[Any], bool]) -> None:
    for key in [key for key in table if fits(key)]:
        del table[key]


@dataclass
class Lease:
    number: int
    payer: int
    holder: int
    pool: int
    node: int
    cls: int
    quanta: int
    priority: int
    priced: int
    tag: Optional[str]
    instance: Optional[int]
    attachment: Optional[int]
    control: bool
    start: int
    to: int
    phase: int = HELD
    ending: int = NOT_ENDED
    revocation: int = 0
    failed: bool = False
    fenced_from: Optional[int] = None
    uncorrected: Optional[int] = None
    unfenced_at: Optional[int] = None  # not in the list: a lease whose fence was cleared is closed

    def encode(self) -> bytes:
        numbers = (self.number, self.payer, self.holder, self.pool, self.node, self.cls, self.quanta)
        return (b"".join(map(varint, numbers)) + bytes([self.priority, self.priced]) + some(self.tag, text)
                + some(self.instance, varint) + some(self.attachment, varint) + bytes([self.control])
                + instant(self.start) + instant(self.to)
                + bytes([self.phase, self.ending, self.revocation, self.failed])
                + some(self.fenced_from, instant) + some(self.uncorrected, instant))

    def end(self, at: int, closed: bool, ending: int) -> None:
        """The end of billing: the deadline stays where it comes first, and no lease ends before it began."""
        self.to = max(min(self.to, at), self.start)
        self.phase = CLOSED if closed else TEARING
        self.ending = FAILED_START if self.failed else ending

    def teardown_ending(self, reason: Optional[int]) -> int:
        """How a lease that is torn down has ended: by the reason of the record, or else by its revocation."""
        if self.revocation == REVOKED_OWN and reason in (None, REASON_PREEMPTED):
            return OWN_REQUEST
        if reason is not None:
            return {REASON_PREEMPTED: PREEMPTED, REASON_NODE_LOST: NODE_LOST}.get(reason, PLAIN)
        return {REVOKED_PREEMPTED: PREEMPTED, REVOKED_EARLIER_RULES: PREEMPTED, REVOKED_LOST: NODE_LOST}.get(
            self.revocation, PLAIN)


def read_lease(r: Reader) -> Lease:
    fixed = seq(v.V64, v.PROJECT, v.PROJECT, v.POOL, v.NODE, v.CLASS, v.V64)(r)
    priorities = (v.PRIORITY(r)[0], v.PRIORITY(r)[0])
    rest = seq(option(v.TEXT), option(v.V64), option(v.V64), v.BOOL, v.INSTANT, v.INSTANT)(r)
    lease = Lease(*fixed, *priorities, *rest, v.enum("phase", 3)(r)[0], code_byte("ending", 5)(r),
                  code_byte("revocation", 5)(r), r.bool(), option(v.INSTANT)(r), option(v.INSTANT)(r))
    if (lease.phase == HELD) != (lease.ending == NOT_ENDED) or (lease.phase == FENCED) != (lease.fenced_from is not None):
        raise Malformed(f"lease {lease.number}: phase, ending and fence do not fit")
    return lease


@dataclass
class Claim:
    node: int
    sequence: int
    project: int
    pool: int
    tag: Optional[str]
    start: int
    capacity: list[tuple[int, int]]
    drained: Optional[int] = None
    lost: Optional[int] = None
    outages: list[tuple[int, int]] = field(default_factory=list)  # to, from
    end: Optional[int] = None  # not in the list: a claim that was released is not in it

    def encode(self) -> bytes:
        numbers = (self.node, self.sequence, self.project, self.pool)
        return (b"".join(map(varint, numbers)) + some(self.tag, text) + instant(self.start)
                + counted(varint(c) + varint(q) for c, q in self.capacity) + some(self.drained, instant)
                + some(self.lost, instant) + counted(instant(a) + instant(b) for b, a in self.outages))

    def outage(self, begin: Optional[int], end: int) -> None:
        if begin is not None and begin < end and (end, begin) not in self.outages:
            insort(self.outages, (end, begin))


def read_claim(r: Reader) -> Claim:
    fixed = seq(v.NODE, v.V64, v.PROJECT, v.POOL, option(v.TEXT), v.INSTANT, CAPACITY, option(v.INSTANT),
                option(v.INSTANT))(r)
    outages = sorted_list(seq(v.INSTANT, v.INSTANT), lambda o: (o[1], o[0]))(r)
    return Claim(*fixed, [(b, a) for a, b in outages])


@dataclass
class Nodes:
    """What the tenant's bill depends on and records of others say."""
    claimed: dict[tuple[int, int], tuple[int, list]] = field(default_factory=dict)  # (claim, node): pool, capacity
    own_evictions: list[int] = field(default_factory=list)

    @classmethod
    def parse(cls, raw: bytes) -> "Nodes":
        def read(r: Reader) -> "Nodes":
            rows = sorted_list(seq(v.V64, v.NODE, v.POOL, CAPACITY), lambda row: row[:2])(r)
            return cls({row[:2]: row[2:] for row in rows}, sorted_list(v.V64, lambda n: n)(r))
        return whole(raw, read)

    def encode(self) -> bytes:
        return counted(varint(s) + varint(n) + varint(p) + counted(varint(c) + varint(q) for c, q in cap)
                       for (s, n), (p, cap) in sorted(self.claimed.items())) + counted(map(varint, self.own_evictions))


@dataclass
class Tenant:
    number: int
    name: Optional[str] = None
    tag: Optional[str] = None
    projects: dict[int, str] = field(default_factory=dict)
    instances: dict[int, Instance] = field(default_factory=dict)
    taxes: dict[int, int] = field(default_factory=dict)
    sharing: dict[Scope, tuple[dict, bytes]] = field(default_factory=dict)
    limits: dict[Limit, int] = field(default_factory=dict)
    leases: dict[int, Lease] = field(default_factory=dict)  # also closed ones; `open_leases` are in the list
    claims: dict[int, Claim] = field(default_factory=dict)  # by node, not released
    attempts: dict[int, tuple[int, int]] = field(default_factory=dict)
    payers: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    released: list[Claim] = field(default_factory=list)
    unknown_leases: set[int] = field(default_factory=set)  # named by a correction, closed before the range began
    unknown_claims: set[tuple[int, int]] = field(default_factory=set)
    last_seen: list[int] = field(default_factory=list)  # of claimed nodes that were lost in the range

    @classmethod
    def parse(cls, raw: bytes) -> "Tenant":
        def read(r: Reader) -> "Tenant":
            number, name, tag = v.TENANT(r), option(v.TEXT)(r), option(v.TEXT)(r)
            projects = dict(sorted_list(seq(v.PROJECT, v.TEXT), first)(r))
            instances = read_instances(r)
            taxes = dict(sorted_list(seq(v.V32, v.V64), first)(r))
            sharing, limits = read_sharing(r), dict(sorted_list(read_limit, first)(r))
            leases = {x.number: x for x in sorted_list(read_lease, lambda x: x.number)(r)}
            claims = {x.node: x for x in sorted_list(read_claim, lambda x: x.node)(r)}
            attempts = {a: (f, n) for a, f, n in sorted_list(seq(v.V64, v.V64, v.V32), first)(r)}
            payers = {row[:2]: row[2:] for row in
                      sorted_list(seq(v.PROJECT, currency, v.V64, residual), lambda row: row[:2])(r)}
            return cls(number, name, tag, projects, instances, taxes, sharing, limits, leases, claims, attempts, payers)
        return whole(raw, read)

    def open_leases(self) -> list[Lease]:
        return [x for _, x in sorted(self.leases.items()) if x.phase != CLOSED]

    def encode(self) -> bytes:
        return (varint(self.number) + some(self.name, text) + some(self.tag, text) + names(self.projects)
                + write_instances(self.instances)
                + counted(varint(m) + varint(rate) for m, rate in sorted(self.taxes.items()))
                + write_sharing(self.sharing)
                + counted(write_limit(of, hard) for of, hard in sorted(self.limits.items()))
                + counted(x.encode() for x in self.open_leases())
                + counted(x.encode() for _, x in sorted(self.claims.items()))
                + counted(varint(a) + varint(f) + varint(n) for a, (f, n) in sorted(self.attempts.items()))
                + counted(varint(p) + c.encode() + varint(s) + signed_bytes(left)
                          for (p, c), (s, left) in sorted(self.payers.items())))

    # ------------------------------------------------------------ what records do

    def fold(self, r: Sealed, nodes: Nodes) -> None:
        handler = HANDLERS.get(r.kind)
        if handler is not None:
            handler(self, r, r.body, nodes)

    def each(self, numbers: Iterable[int], r: Sealed, phase: int = HELD) -> Iterable[Lease]:
        for n in numbers:
            lease = self.leases.get(n)
            if lease is None or lease.phase == CLOSED:
                raise Malformed(f"{r.name} names lease {n}, which is not open")
            if lease.phase != phase:
                raise Malformed(f"{r.name} names lease {n} in another phase than it should be")
            yield lease

    def tenant_put(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.name, self.tag = b[1], b[2]

    def project_put(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.projects[b[0]] = b[2]

    def project_deleted(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.projects.pop(b[0], None)
        drop(self.limits, lambda of: of[0] == b[0])

    def instance_put(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.instances[b["instance"]] = (b["app"], b["name"], b["project"])

    def instance_deleted(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.instances.pop(b["instance"], None)
        drop(self.sharing, lambda scope: scope[2] == b["instance"])
        drop(self.limits, lambda of: of[1] == b["instance"])

    def sharing_put(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.sharing[scope_of(b)] = (b, r.raw_body)

    def limit(self, r: Sealed, b: Any, _: Nodes) -> None:
        if b["project"] is not None:
            of = (b["project"], -1 if b["instance"] is None else b["instance"], b["unit"])
            self.limits.pop(of, None)
            if b.get("hard") is not None:
                self.limits[of] = b["hard"]

    def common_changed(self, r: Sealed) -> None:
        """What goes with an app, or with an app instance of the platform."""
        if r.kind == 163:
            drop(self.sharing, lambda scope: scope[0] == r.body["app"])
        elif r.kind == 165:
            drop(self.limits, lambda of: of[1] == r.body["instance"])

    def tax_put(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.taxes[b["from"]] = b["rate"]

    def granted(self, r: Sealed, b: Any, _: Nodes) -> None:
        (number, node, pool, ttl, prio, rules, members), flags, rest = b
        present = dict(zip([i for i in range(13) if flags >> i & 1], rest))
        if r.project is None:
            raise Malformed("a grant without a project")
        if r.stamp + ttl >= 1 << 64 or number + len(members) >= 1 << 64:
            raise Malformed("a grant with a deadline beyond all time, or of more leases than there are numbers")
        if any(n in self.leases and self.leases[n].phase != CLOSED for n in range(number, number + len(members))):
            raise Malformed("it grants a lease that is open")
        priced = GUARANTEED if flags & 1 and rules >= PRICED_BY_FLAG else prio[0]
        for i, (cls, quanta, _devices) in enumerate(members):
            self.leases[number + i] = Lease(
                number + i, present.get(6, r.project), r.project, pool, node, cls, quanta, prio[0], priced, self.tag,
                present.get(4), present.get(5), 1 in present, r.stamp, r.stamp + ttl)

    def renewed(self, r: Sealed, b: Any, _: Nodes) -> None:
        earliest, rows = b
        after = {row[0]: row[1] for row in rows}
        for lease in self.each(after, r):
            lease.to = earliest + after[lease.number]

    def released_leases(self, r: Sealed, b: Any, _: Nodes) -> None:
        for lease in self.each([row[0] for row in b[0]], r):
            evicted = {REVOKED_PREEMPTED: PREEMPTED, REVOKED_OWN: OWN_REQUEST}
            lease.end(r.effective, b[1], evicted.get(lease.revocation, PLAIN))

    def expired(self, r: Sealed, b: Any, _: Nodes) -> None:
        for lease in self.each(b[0], r):
            lease.end(r.effective, b[1], PLAIN)

    def revoked(self, r: Sealed, b: Any, nodes: Nodes) -> None:
        reason, by = r.parts.get(5, (0, None))
        kind = {1: REVOKED_PREEMPTED, 5: REVOKED_LOST}.get(reason, REVOKED_PLAIN)
        if reason == REASON_PREEMPTED and 1 not in b[2]:
            kind = REVOKED_EARLIER_RULES
        elif reason == REASON_PREEMPTED and by in nodes.own_evictions:
            kind = REVOKED_OWN
        for lease in self.each(b[0], r):
            lease.revocation = kind

    def teardown(self, r: Sealed, b: Any, _: Nodes) -> None:
        for lease in self.each(b[0], r):
            lease.end(r.effective, b[2], lease.teardown_ending(r.parts.get(5, (None,))[0]))

    def torn_down(self, r: Sealed, b: Any, _: Nodes) -> None:
        for lease in self.each(b[1], r, TEARING):
            lease.phase = CLOSED

    def fenced(self, r: Sealed, b: Any, _: Nodes) -> None:
        for lease in self.each(b[0], r, TEARING):
            lease.phase, lease.fenced_from = FENCED, r.effective

    def unfenced(self, r: Sealed, b: Any, _: Nodes) -> None:
        for lease in self.each(b[0], r, FENCED):
            lease.phase, lease.unfenced_at = CLOSED, r.stamp

    def end_corrected(self, r: Sealed, b: Any, _: Nodes) -> None:
        for n in b[1]:
            lease = self.leases.get(n)
            if lease is None:
                self.unknown_leases.add(n)
                continue
            if lease.phase == HELD:
                raise Malformed(f"it corrects the end of lease {n}, which is held")
            if lease.uncorrected is None:
                lease.uncorrected = lease.to
            lease.to = max(min(lease.to, r.effective), lease.start)

    def placed(self, r: Sealed, b: Any, _: Nodes) -> None:
        self.attempts[b[0]] = (b[2], b[3])

    def attempt_over(self, r: Sealed, b: Any, _: Nodes) -> None:
        """The last attempt of an allocation stays in the list until the allocation itself is over.

        One that waits again keeps it. Leases that were evicted have not failed at the start.
        """
        began, count = self.attempts.get(b[0], (0, 0))
        if r.kind not in (76, 77):
            self.attempts.pop(b[0], None)
        if r.kind == 79 and b[1][0] == FAILED_START_END:
            named = range(began, began + count)  # the record may name far more than there are
            known = [n for n in self.leases if n in named] if count > len(self.leases) else [
                n for n in named if n in self.leases]
            if len(known) < count:
                self.unknown_leases.add(next(n for n in named if n not in self.leases))
            for lease in map(self.leases.__getitem__, known):
                if lease.revocation in (REVOKED_PREEMPTED, REVOKED_EARLIER_RULES, REVOKED_OWN):
                    continue
                lease.failed = True
                if lease.ending == PLAIN:
                    lease.ending = FAILED_START

    def claimed(self, r: Sealed, b: Any, nodes: Nodes) -> None:
        for node in b[0]:
            if (r.sequence, node) not in nodes.claimed:
                raise Malformed(f"node {node}, which the tenant claimed, is not in the list of claimed nodes")
            if node in self.claims or r.project is None:
                raise Malformed(f"node {node} is claimed twice, or by no project")
            pool, capacity = nodes.claimed[r.sequence, node]
            self.claims[node] = Claim(node, r.sequence, r.project, pool, self.tag, r.stamp, list(capacity))

    def claim_released(self, r: Sealed, b: Any, _: Nodes) -> None:
        for node in b[0]:
            claim = self.claims.pop(node, None)
            if claim is None:
                raise Malformed(f"node {node} is released and was not claimed")
            claim.end = r.stamp
            self.released.append(claim)

    def claim_corrected(self, r: Sealed, b: Any, _: Nodes) -> None:
        _loss, node, sequence = b
        self.last_seen.append(r.effective)
        for claim in self.released:
            if (claim.node, claim.sequence) == (node, sequence):
                claim.end = max(min(claim.end, r.effective), claim.start)
                return
        self.unknown_claims.add((sequence, node))

    def drained(self, r: Sealed, b: Any, _: Nodes) -> None:
        if claim := self.claims.get(b[0]):
            claim.outage(claim.drained, r.stamp)
            claim.drained = r.stamp

    def resumed(self, r: Sealed, b: Any, _: Nodes) -> None:
        if claim := self.claims.get(b[0]):
            claim.outage(claim.drained, r.stamp)
            claim.drained = None

    def node_lost(self, r: Sealed, b: Any, _: Nodes) -> None:
        if claim := self.claims.get(b[0]):
            claim.lost = b[1]
            self.last_seen.append(b[1])

    def returned(self, r: Sealed, b: Any, _: Nodes) -> None:
        if claim := self.claims.get(b[0]):
            claim.outage(claim.lost, r.stamp)
            claim.lost = None

    def booked(self, r: Sealed, b: Any, _: Nodes) -> None:
        if r.project is None:
            return
        payer = (r.project, b["currency"])
        left = b["residual"] if "residual" in b else self.payers.get(payer, (0, 0))[1]
        self.payers[payer] = (r.sequence, left)


HANDLERS: dict[int, Callable] = {
    13: Tenant.tenant_put, 15: Tenant.project_put, 16: Tenant.project_deleted, 40: Tenant.granted, 42: Tenant.renewed,
    43: Tenant.released_leases, 44: Tenant.expired, 45: Tenant.revoked, 46: Tenant.teardown, 47: Tenant.torn_down,
    48: Tenant.fenced, 49: Tenant.unfenced, 72: Tenant.placed, 76: Tenant.attempt_over, 77: Tenant.attempt_over,
    78: Tenant.attempt_over, 79: Tenant.attempt_over, 80: Tenant.attempt_over, 90: Tenant.claimed,
    91: Tenant.claim_released, 115: Tenant.end_corrected, 117: Tenant.claim_corrected, 32: Tenant.drained,
    33: Tenant.resumed, 34: Tenant.node_lost, 35: Tenant.returned, 141: Tenant.booked, 143: Tenant.booked,
    144: Tenant.booked, 175: Tenant.booked, 154: Tenant.tax_put, 164: Tenant.instance_put,
    165: Tenant.instance_deleted, 170: Tenant.limit, 171: Tenant.limit, 174: Tenant.sharing_put,
}


def owner(r: Sealed, claimers: dict[int, int]) -> Optional[int]:
    """Whose record it is, if it is not common: `claimers` says which tenant has claimed a node."""
    if r.tenant is not None:
        return r.tenant
    if r.kind == 13:
        return r.body[0]
    if r.kind in (15, 17):
        return r.body[1]
    if r.kind in (32, 33, 34, 35):
        return claimers.get(r.body[0])
    return None
