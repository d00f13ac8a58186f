"""A small journal whose figures were worked out by hand, and the proof files of its invoices.

One tenant holds 2 of 7 quanta of a GPU on 1 November 2026, from 00:30 to 02:10, at the built-in price of 0.01 EUR per
GPU-second: 2/7 × 1800 s, 3600 s and 600 s, which is 36/7, 72/7 and 12/7 EUR. A second lease of the same size runs from
ten minutes before the end of the month to ten minutes after it: 12/7 EUR in November, and as much in December.
"""

from __future__ import annotations

import base64
from typing import Iterable, Optional

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ledger import encode_lines
from lists import Common, Nodes, Tenant, instant, is_common, owner, signed_bytes, some, text, varint
from records import Sealed, decode, month_start
from verify import ED25519, ZERO32, Frontier, key_id, sha256

ORIGIN = "bill.example"
KEY = Ed25519PrivateKey.from_private_bytes(b"\x05" * 32)
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def verifier_key(name: str, kind: int, public: bytes) -> str:
    return f"{name}+{key_id(name, kind, public).hex()}+{base64.b64encode(bytes([kind]) + public).decode()}"


def trust(origin: str, public: bytes) -> str:
    return f"leasehold-trust v1\norigin {origin}\nkey {verifier_key(origin, ED25519, public)}\n"


TRUST = trust(ORIGIN, PUBLIC)
NOVEMBER = 2026 * 12 + 10
DECEMBER = NOVEMBER + 1
SECOND = 10**9
HOUR = 3600 * SECOND
START = month_start(NOVEMBER)
BORDER = month_start(DECEMBER)
TENANT, PROJECT = 3, 4
STANDARD = 2


def big(n: int) -> bytes:
    raw = n.to_bytes((n.bit_length() + 7) // 8, "big")
    return varint(len(raw)) + raw


def exact(numerator: int, denominator: int) -> bytes:
    return bytes([numerator < 0]) + big(abs(numerator)) + big(denominator)


def span(ns: int) -> bytes:
    """Whole seconds."""
    return varint(ns // SECOND * 4)


def line(hour: int, usage: int, cost: tuple[int, int], posted: int) -> bytes:
    key = (instant(hour) + varint(PROJECT) + varint(0) + b"\1" + varint(0) + bytes([STANDARD, STANDARD])
           + some("cc", text) + b"\0\0\0\0")
    return key + signed_bytes(usage) + exact(*cost) + signed_bytes(posted)


class Journal:
    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.records: list[Sealed] = []
        self.head = ZERO32

    def add(self, stamp: int, kind: int, body: bytes, project: Optional[int] = None,
            tenant: Optional[int] = None) -> int:
        bits = (tenant is not None) << 1 | (project is not None) << 2
        parts = b"".join(varint(n) for n in (tenant, project) if n is not None)
        raw = varint(len(self.raw)) + instant(stamp) + varint(kind) + varint(bits) + parts + body
        record = decode(self.head + raw)
        self.head = record.hash
        self.raw.append(raw)
        self.records.append(record)
        return record.sequence

    def own(self, stamp: int, kind: int, body: bytes) -> int:
        return self.add(stamp, kind, body, PROJECT, TENANT)

    def posted(self, stamp: int, month: int, previous: Optional[int], lines: list[bytes], residual: int) -> int:
        return self.own(stamp, 141, b"EUR" + varint(month) + instant(stamp // HOUR * HOUR) + b"\1"
                        + varint(len(self.raw)) + some(previous, varint) + varint(len(lines)) + b"".join(lines)
                        + signed_bytes(residual))

    def closing(self, stamp: int, month: int) -> int:
        return self.add(stamp, 150, varint(month))

    def invoice(self, stamp: int, month: int, number: int, posted: int, net: int, tax: int, usage: int) -> int:
        lines = {(month, PROJECT, False, PROJECT, 0, (1, 0), STANDARD, None, False): (usage, posted)}
        body = (b"\1" + varint(number) + varint(month) + b"EUR" + b"\1" + varint(PROJECT) + signed_bytes(posted)
                + b"\1" + varint(240_000_000) + b"".join(map(signed_bytes, (posted, net, tax, net + tax)))
                + varint(1) + sha256(encode_lines(lines)) + instant(stamp))
        return self.add(stamp, 151, body, tenant=TENANT)

    # ------------------------------------------------------------ statements and proofs

    def states(self, until: int) -> tuple[Tenant, Common]:
        tenant, common = Tenant(TENANT), Common()
        for r in self.records[:until]:
            if is_common(r, common):
                common.fold(r)
            elif owner(r, {}) == TENANT:
                tenant.fold(r, Nodes())
        return tenant, common

    def belonging(self, begin: int, end: int) -> tuple[list[int], list[int]]:
        """Sequences of the tenant's records and of the common ones."""
        own, common, state = [], [], Common()
        for r in self.records[:end]:
            if is_common(r, state):
                state.fold(r)
                common.append(r.sequence)
            elif owner(r, {}) == TENANT:
                own.append(r.sequence)
        return [n for n in own if n >= begin], [n for n in common if n >= begin]

    def stated(self, stamp: int, month: int, begin: int, border: int, cut: int) -> int:
        own, common = self.belonging(begin, cut)
        at_start, at_border = self.states(begin), self.states(border)
        body = varint(month) + varint(begin) + varint(border) + varint(cut)
        for sequences in (own, common):
            tree = Frontier()
            for n in sequences:
                tree.append(self.records[n].hash)
            body += varint(len(sequences)) + tree.root()
        for i in (0, 1):
            body += sha256(at_start[i].encode()) + sha256(at_border[i].encode())
        return self.add(stamp, 176, body + sha256(Nodes().encode()), tenant=TENANT)

    def closed(self, stamp: int, month: int) -> int:
        return self.add(stamp, 152, varint(month) + b"\1\0\1\1")

    def checkpoint(self) -> bytes:
        tree = Frontier()
        for r in self.records:
            tree.append(r.hash)
        note = f"{ORIGIN}\n{tree.size}\n{base64.b64encode(tree.root()).decode()}\n".encode()
        blob = key_id(ORIGIN, ED25519, PUBLIC) + KEY.sign(note)
        return note + f"\n\u2014 {ORIGIN} {base64.b64encode(blob).decode()}\n".encode()

    def proof(self, number: int, sequences: Iterable[int], begin: int) -> bytes:
        tenant, common = self.states(begin)
        return self.file(number, sequences, common.encode(), tenant.encode(), Nodes().encode())

    def file(self, number: int, sequences: Iterable[int], *lists: bytes, growth: bytes = b"\0") -> bytes:
        note = self.checkpoint()
        out = b"leasehold-invoice-proof v1\n\1" + varint(number) + varint(len(note)) + note + growth
        known, before = set(), -2
        for n in sorted(sequences):
            out += varint(len(self.raw[n]) * 4) + self.raw[n]
            known.add(n)
            if n != before + 1:
                out += self.records[n - 1].hash if n else ZERO32
                if n % 2:
                    known.add(n - 1)
            before = n
        out += b"\0" + b"".join(varint(len(raw)) + raw for raw in lists)
        leaves = [sha256(b"\0", r.hash) for r in self.records]
        return out + b"".join(missing_roots(leaves, known, 0, len(leaves)))


def tree_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while 2 * k < len(leaves):
        k *= 2
    return sha256(b"\1", tree_root(leaves[:k]), tree_root(leaves[k:]))


def missing_roots(leaves: list[bytes], known: set[int], start: int, end: int) -> list[bytes]:
    if not any(start <= n < end for n in known):
        return [tree_root(leaves[start:end])]
    if end - start == 1:
        return []
    k = 1
    while 2 * k < end - start:
        k *= 2
    return missing_roots(leaves, known, start, start + k) + missing_roots(leaves, known, start + k, end)


def month_records(j: Journal, begin: int, cut: int, invoice: int, rest: list[int], earlier: list[int]) -> list[int]:
    own, common = j.belonging(begin, cut)
    after = [r.sequence for r in j.records[cut + 1:invoice + 1] if r.tenant == TENANT]
    return [*own, *common, cut, *after, *rest, *earlier]


# Residuals in 10^-30 of the currency: a step is 10^24 of them, and 10^24 = 7 × 142857142857142857142857 + 1.
SEVENTH = 142857142857142857142857
COSTS = [(36_000_000, 7), (72_000_000, 7), (12_000_000, 7), (12_000_000, 7)]  # steps, hour by hour
POSTED = [5_142_857, 10_285_714, 1_714_286, 1_714_286]
RESIDUALS = [SEVENTH, 3 * SEVENTH, SEVENTH, -SEVENTH]
FIGURES = {"posted": POSTED[0], "usage": 2 * 1800 * SECOND, "cost": COSTS[0][0], "residual": RESIDUALS[2],
           "sum": 18_857_143, "net": 18_860_000, "tax": 4_530_000, "previous": 0, "held": 2, "december": 1_714_286}


def two_months(leave_out: int = -1, put_in: Optional[int] = None, **change: int) -> tuple[bytes, bytes]:
    """The proof files of November and December. `change` replaces a figure, to make one of them wrong.

    0 to 5 are classes, prices and names, 6 and 12 are heartbeats, 7 and 8 the first lease, 9 to 11 its postings, 13 and 14
    the second lease, 15 the cut, 16 a posting, 17 the invoice, 18 the statement, 19 the end of the month.
    """
    j, n = Journal(), FIGURES | change
    j.add(START, 140, instant(START))
    j.add(START, 10, varint(0) + text("gpu") + b"\1\0" + varint(7) + b"\0")
    j.add(START, 11, varint(0) + text("main") + b"\1\0\0\0\0\0\0\0")
    j.add(START, 13, varint(TENANT) + text("physics") + some("cc", text) + b"\2\0")
    j.add(START, 15, varint(PROJECT) + varint(TENANT) + text("lattice"))
    j.add(START, 154, varint(TENANT) + varint(NOVEMBER) + varint(240_000_000), tenant=TENANT)
    j.add(START, 3, b"")
    lease(j, 1, START + HOUR // 2, n["held"])
    j.own(START + 2 * HOUR + 600 * SECOND, 43, b"\1\0" + varint(1) + b"\1")
    at, usages = START + 3 * HOUR, [n["usage"], 2 * HOUR, 1200 * SECOND, 1200 * SECOND]
    costs, posted = [(n["cost"], 7), *COSTS[1:]], [n["posted"], *POSTED[1:]]
    left = [*RESIDUALS[:2], n["residual"], RESIDUALS[3]]
    previous = None
    for i in range(3):
        previous = j.posted(at, NOVEMBER, previous, [line(START + i * HOUR, usages[i], costs[i], posted[i])], left[i])
        previous += n["previous"]
    previous -= n["previous"]
    j.add(BORDER - HOUR, 3, b"")
    lease(j, 2, BORDER - 600 * SECOND, 2)
    border = len(j.raw)
    j.own(BORDER + 600 * SECOND, 43, b"\1\0" + varint(2) + b"\1")
    cut = j.closing(BORDER + 900 * SECOND, NOVEMBER)
    p = j.posted(BORDER + 900 * SECOND, NOVEMBER, previous,
                 [line(BORDER - HOUR, usages[3], costs[3], posted[3])], left[3])  # the last settlement follows the cut
    issued = j.invoice(BORDER + 901 * SECOND, NOVEMBER, 12, n["sum"], n["net"], n["tax"], 2 * 6600 * SECOND)
    stated = j.stated(BORDER + 902 * SECOND, NOVEMBER, 0, border, cut)
    closed = j.closed(BORDER + 903 * SECOND, NOVEMBER)
    j.posted(BORDER + HOUR, DECEMBER, p, [line(BORDER, 1200 * SECOND, COSTS[3], n["december"])], -3 * SEVENTH)
    end = month_start(DECEMBER + 1)
    border2 = len(j.raw)
    cut2 = j.closing(end + SECOND, DECEMBER)
    issued2 = j.invoice(end + 2 * SECOND, DECEMBER, 13, 1_714_286, 1_710_000, 410_000, 1200 * SECOND)
    stated2 = j.stated(end + 3 * SECOND, DECEMBER, border, border2, cut2)
    closed2 = j.closed(end + 4 * SECOND, DECEMBER)
    first = [s for s in month_records(j, 0, cut, issued, [stated, closed], []) if s != leave_out]
    first += [] if put_in is None else [put_in]
    second = month_records(j, border, cut2, issued2, [stated2, closed2], [cut])
    return j.proof(12, first, 0), j.proof(13, second, border)


def lease(j: Journal, number: int, stamp: int, quanta: int) -> None:
    j.own(stamp, 40, varint(number) + varint(9) + varint(0) + span(10 * HOUR) + bytes([STANDARD]) + varint(7)
          + b"\1" + varint(0) + varint(quanta) + varint(1) + b"\0")
