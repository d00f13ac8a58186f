#!/usr/bin/env python3
"""A second, independent verifier for the journal format, versions 1 and 2.

Written from docs/reference/journal-format.md (and from C2SP signed-note, tlog-checkpoint,
tlog-cosignature and RFC 6962) so that it can be held against the first implementation. They share no
code. Encodings, tree, notes and signatures were written without sight of the first one; what "OPEN"
marks, tree files without their segment, journals without records, and which of two records with a broken
link is named were settled later, knowing what the first one does: agreement there proves less.
Needs Python 3.11 and the `cryptography` package (Ed25519 only).

    verify.py DATA_FOLDER --trust FILE [--archive DIR]... [--json]

Exit status: 0 the journal verifies, 3 it does not, 2 the call or the trust file is unusable.

How it works: one pass over all segments in order keeps the chain (hash, sequence, stamp), the key
in force and the frontier of the Merkle tree. Whenever the pass arrives at a size for which somebody
signed a checkpoint (the anchor, a tree file, the trust file's pinned note), it compares. The first
thing that does not fit ends the pass. "OPEN" marks the few places where the page leaves a choice.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import re
import sys
import time
import zlib
from dataclasses import dataclass, field
from math import gcd
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, NoReturn, Optional

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT_VERSIONS = (1, 2)
MAGIC, MAC = {1: b"LHB1", 2: b"LHB2"}, {1: 0, 2: 32}  # of a batch, by version; the MAC is for its writer alone
ZERO32 = bytes(32)
U64 = 1 << 64
SEGMENT_HEADER, BATCH_HEADER, SLOT = 96, 16, 4096
MAX_PAYLOAD, MAX_COUNT, MIN_RECORD, MAX_RECORD = 16_777_216, 65_536, 32, 262_144
RECORD_SIGNATURE_PREFIX = b"leasehold record signature v1\n"
ED25519, COSIGNATURE_V1 = 1, 4  # C2SP signature types


class UsageError(Exception):
    """The call or the trust file cannot be used (exit 2)."""


class NoKey(UsageError):
    """The trust file names no key."""


class Malformed(Exception):
    """Bytes that do not decode; the caller knows where they lie."""


class NewerFormat(Malformed):
    """Whole, and of a version that is not known here."""


class Bad(Exception):
    """Verification failed, and where."""

    def __init__(self, why: str, *, sequence: Optional[int] = None, segment: Optional[int] = None,
                 offset: Optional[int] = None, file: Optional[str] = None) -> None:
        super().__init__(why)
        self.where = {"sequence": sequence, "segment": segment, "offset": offset, "file": file, "why": why}


def sha256(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


# The y-coordinates of the points of small order, also in the forms that are not reduced; the top bit is a sign.
SMALL_ORDER = {int(n, 16) for n in (
    "00", "01",
    "05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826",
    "7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7",
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffec",
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed",
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffee")}


def signature_fits(key: bytes, signature: bytes, message: bytes) -> bool:
    # OPEN: the page refuses keys of small order; a signature's point is looked at in the same way.
    if any(int.from_bytes(p, "little") & (1 << 255) - 1 in SMALL_ORDER for p in (key, signature[:32])):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


# ---------------------------------------------------------------- primitive encodings

_WHITE_SPACE = "\t\n\v\f\r \x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_OUTER_SPACE = re.compile(f"^[{_WHITE_SPACE}]|[{_WHITE_SPACE}]\\Z")
_NOT_IN_TEXT = re.compile("[\0-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
                          "\U000e0000-\U000e007f]")


def check_text(raw: bytes) -> str:
    if not 1 <= len(raw) <= 128:
        raise Malformed(f"text of {len(raw)} bytes, not 1 to 128")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8") from None
    if _NOT_IN_TEXT.search(text):
        raise Malformed("text with a control or invisible character")
    if _OUTER_SPACE.search(text):
        raise Malformed("text with outer spaces")
    return text


class Reader:
    """A strict reader: it accepts canonical bytes only."""

    def __init__(self, data: bytes) -> None:
        self.data, self.pos = data, 0

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.pos:
            raise Malformed(f"ends early: {n} bytes wanted, {len(self.data) - self.pos} left")
        self.pos += n
        return self.data[self.pos - n:self.pos]

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self, bits: int = 64) -> int:
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 0x7F) << shift
            if value >> bits:
                raise Malformed(f"varint over {bits} bits")
            if b < 0x80:
                if b == 0 and shift:
                    raise Malformed("varint with a superfluous trailing group")
                return value
            shift += 7
            if shift >= bits:
                raise Malformed(f"varint over {bits} bits")

    def bool(self) -> bool:
        b = self.byte()
        if b > 1:
            raise Malformed(f"bool of {b}")
        return b == 1

    def instant(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def text(self) -> str:
        return check_text(self.take(self.count(1, 128, "bytes of text")))

    def scaled(self, limit: int = 1 << 120) -> int:
        word = self.varint(bits=122)
        n, unit = word >> 2, word & 3
        if unit and n % 1000 == 0:
            raise Malformed("scaled number not in its coarsest unit")
        value = n * 1000 ** (3 - unit)
        if value >= limit:
            raise Malformed("scaled number too large")
        return value

    def span(self) -> int:
        return self.scaled(U64)

    def count(self, least: int, most: int, what: str) -> int:
        n = self.varint()
        if not least <= n <= most:
            raise Malformed(f"{n} {what}, not {least} to {most}")
        return n

    def numbers(self, count: int) -> Iterator[int]:
        """Lease numbers, ascending: the first, then distances minus 1."""
        number = -1
        for i in range(count):
            number = self.varint() if i == 0 else number + 1 + self.varint()
            if number >= U64:
                raise Malformed("lease number over 64 bits")
            yield number

    def activity(self) -> tuple:
        covered, busy, active, bits = self.span(), self.scaled(), self.span(), self.byte()
        if bits >> 5:
            raise Malformed("activity with unknown waiting times")
        waits = [self.span() if bits >> i & 1 else 0 for i in range(5)]
        if any(bits >> i & 1 and waits[i] == 0 for i in range(5)):
            raise Malformed("activity with a waiting time of zero written out")
        return covered, busy, active, tuple(waits)


Parser = Callable[[Reader], Any]


def V16(r: Reader) -> int: return r.varint(bits=16)
def V32(r: Reader) -> int: return r.varint(bits=32)
def V64(r: Reader) -> int: return r.varint()
def TEXT(r: Reader) -> str: return r.text()
def SPAN(r: Reader) -> int: return r.span()
def AMOUNT(r: Reader) -> int: return r.scaled()
def BOOL(r: Reader) -> bool: return r.bool()
def INSTANT(r: Reader) -> int: return r.instant()
def KEY(r: Reader) -> bytes: return r.take(32)


def seq(*fields: Parser) -> Parser:
    return lambda r: tuple(f(r) for f in fields)


def option(p: Parser) -> Parser:
    return lambda r: p(r) if r.bool() else None


def items(p: Parser, least: int = 0, most: int = 4096) -> Parser:
    return lambda r: [p(r) for _ in range(r.count(least, most, "items"))]


def added(fields: dict[int, Parser]) -> Parser:
    """Fields that were added later: a varint with the bits of those that are present, absent if there are none."""

    def parse(r: Reader) -> dict:
        if r.pos == len(r.data):
            return {}
        bits = r.varint()
        if bits == 0 or bits & ~sum(fields):
            raise Malformed(f"added fields {bits}")
        return {bit: p(r) for bit, p in fields.items() if bits & bit}

    return parse


def choice(what: str, cases: dict[int, Parser]) -> Parser:
    def parse(r: Reader) -> tuple:
        tag = r.byte()
        if tag not in cases:
            raise Malformed(f"{what} of {tag}")
        return tag, cases[tag](r)
    return parse


def enum(what: str, highest: int, lowest: int = 1) -> Parser:
    return choice(what, {i: seq() for i in range(lowest, highest + 1)})


CLASS = V16
TENANT = PROJECT = USER = TOKEN = POOL = NODE = QUOTA = CARD = POLICY = VERSION = V32
PRIORITY = enum("priority", 3)
LEVEL = enum("level", 2, lowest=0)


def LEASES(r: Reader) -> list[int]:
    return list(r.numbers(r.count(1, 1024, "leases")))


def ANY_LEASES(r: Reader) -> list[int]:
    return list(r.numbers(r.count(0, 1024, "leases")))


def node_list(most: int) -> Parser:
    def parse(r: Reader) -> list[int]:
        nodes = list(r.numbers(r.count(1, most, "nodes")))
        if nodes[-1] >= 2**32:
            raise Malformed("node over 32 bits")
        return nodes

    return parse


NODES = node_list(256)
NODE_SET = node_list(1024)


def with_activity(r: Reader, count: int, any_carries: bool, before: Parser) -> list[tuple]:
    rows = [(n, before(r), r.activity() if any_carries and r.bool() else None) for n in r.numbers(count)]
    if any_carries and all(row[2] is None for row in rows):
        raise Malformed("says that some lease carries activity, but none does")
    return rows


def REPORTED(r: Reader) -> list[tuple]:
    count = r.count(1, 1024, "leases")
    return with_activity(r, count, r.bool(), seq())


def RENEWED(r: Reader) -> tuple:
    count = r.count(1, 1024, "leases")
    any_carries, earliest = r.bool(), r.instant()
    rows = with_activity(r, count, any_carries, SPAN)
    if min(row[1] for row in rows) != 0:
        raise Malformed("earliest deadline is not that of any lease")
    if earliest + max(row[1] for row in rows) >= U64:
        raise Malformed("deadline over 64 bits")
    return earliest, rows


def WEIGHTS(r: Reader) -> tuple:
    weights = seq(V16, V16, V16, V16)(r)
    if sum(weights) != 1000:
        raise Malformed("weights that do not add up to one")
    return weights


def PROFILE(r: Reader) -> int:
    word = r.varint()
    if word >> 15 or any(word >> 3 * kind & 7 > 4 for kind in range(5)):
        raise Malformed("profile of unknown levels")
    return word


def LABELS(r: Reader) -> list[tuple]:
    return items(seq(TEXT, TEXT), 1, 64)(r)


def GRANTED(r: Reader) -> tuple:
    fixed = seq(V64, NODE, POOL, SPAN, PRIORITY, VERSION, MEMBERS)(r)
    flags = r.varint()
    if flags >> 13:
        raise Malformed("lease.granted with unknown flags")
    rest: list[Parser] = [seq(), seq(), lambda q: q.take(16), V64, V64, V64, PROJECT, items(QUOTA, 1, 256), QUOTA,
                          PROFILE, choice("weights", {1: seq(), 2: seq(), 3: WEIGHTS}), LABELS, V32]
    return fixed, flags, [p(r) for i, p in enumerate(rest) if flags >> i & 1]


def decimal_up_to(most: int) -> Parser:
    def parse(r: Reader) -> int:
        billionths = r.varint()
        if billionths > most * 10**9:
            raise Malformed(f"decimal above {most}")
        return billionths
    return parse


PRICE, FACTOR = decimal_up_to(1_000_000), decimal_up_to(1_000)


def CURRENCY(r: Reader) -> bytes:
    letters = r.take(3)
    if not all(65 <= letter <= 90 for letter in letters):
        raise Malformed(f"currency of {letters!r}")
    return letters


def rising(key: Parser, value: Parser, order: Callable[[Any], Any] = lambda k: k) -> Parser:
    def parse(r: Reader) -> list[tuple]:
        rows = items(seq(key, value), 0, 1024)(r)
        keys = [order(row[0]) for row in rows]
        if any(a >= b for a, b in zip(keys, keys[1:])):
            raise Malformed("lines of a rate card that do not rise")
        return rows
    return parse


def PERIODS(r: Reader) -> tuple:
    """What prices are for, where not all of them are per second."""
    kinds = [enum("period", 3)(r)[0] for _ in range(5)]
    classes = rising(CLASS, enum("period", 3, 2))(r)
    if all(kind == 1 for kind in kinds) and not classes:
        raise Malformed("periods that are all a second")
    return kinds, classes


def FRACTION(r: Reader) -> tuple[int, int]:
    numerator, denominator = int.from_bytes(r.take(16), "big"), r.varint()
    if denominator == 0 or gcd(numerator, denominator) != 1:
        raise Malformed(f"fraction {numerator}/{denominator}")
    return numerator, denominator


def SIGNED(r: Reader) -> int:
    word = r.varint(bits=129)
    if word == 1:
        raise Malformed("negative zero")
    return -(word >> 1) if word & 1 else word >> 1


ASKS = items(seq(CLASS, V64))
DOMAIN, ATTEMPT_END = enum("domain", 3), enum("attempt end", 7)
CAUSE = choice("cause", {
    1: seq(QUOTA, V64, V64, V64), 2: seq(QUOTA, INSTANT), 3: seq(CLASS, V64, V64),
    4: seq(option(V64), AMOUNT, AMOUNT, AMOUNT, AMOUNT), 5: seq(QUOTA, FRACTION, FRACTION, V64),
    6: seq(BOOL, enum("state of credit", 4), SIGNED, AMOUNT)})
MEMBERS = items(seq(CLASS, V64, V64), 1, 16)
BELONGING = seq(option(V64), choice("correlation", {1: lambda r: r.take(16), 2: V64}))
BELONGS_TO, WITH_REASON = added({1: BELONGING}), added({1: TEXT})
CLAIM, OVER_QUOTA = added({1: V64}), enum("when over quota", 2)
LIMIT = choice("limit", {1: V64, 2: V64, 3: seq(V64, V64, SPAN)})
HOLDERS = choice("holders", {0: seq(), 1: V64})
SPEC = seq(
    option(POOL), ASKS, V32, PRIORITY, option(SPAN), option(SPAN), BOOL, BOOL, items(seq(TEXT, TEXT)), option(DOMAIN),
    option(DOMAIN), option(PROFILE), BOOL, BOOL, option(lambda r: r.take(16)), option(V64), option(V64), option(PROJECT))


def PARTICULARS(r: Reader) -> Optional[tuple]:
    """What else was asked: to the end of the body, and nothing where nothing was."""
    if r.pos == len(r.data):
        return None
    flags = r.varint()
    if flags == 0 or flags >> 6:
        raise Malformed("lease.denied with unknown flags")
    rest: list[Parser] = [seq(), NODE, LABELS, PROFILE, V64, lambda q: q.take(16)]
    return flags, [p(r) for i, p in enumerate(rest) if flags >> i & 1]


CHARGE = choice("charge", {1: seq(), 2: seq(), 3: SPAN})
OPT_SPANS = seq(option(SPAN), option(SPAN), option(SPAN))
KINDS: dict[int, tuple[str, Parser]] = {
    1: ("journal.genesis", seq(VERSION, TEXT, KEY, TEXT)),
    2: ("journal.started", seq(V64, TEXT, VERSION, option(seq(INSTANT, INSTANT)))),
    3: ("journal.heartbeat", seq()),
    4: ("journal.key_rotated", seq(KEY, KEY)),
    5: ("journal.clock_jumped", seq(INSTANT)),
    7: ("journal.converted", seq(VERSION)),
    8: ("journal.tail_resolved", seq(enum("tail action", 2), V64, V64)),
    6: ("settings.changed", seq(SPAN, SPAN, SPAN, SPAN, SPAN)),
    10: ("class.put", seq(CLASS, TEXT, enum("resource kind", 5), option(TEXT), V64, BOOL)),
    11: ("pool.put", seq(POOL, TEXT, enum("strategy", 2), OPT_SPANS, OPT_SPANS, option(SPAN))),
    12: ("pool.deleted", seq(POOL)),
    13: ("tenant.put", seq(
        TENANT, TEXT, option(TEXT), PRIORITY, option(V64),
        added({1: TEXT, 2: OVER_QUOTA, 4: items(TEXT, 1, 8), 8: TEXT}))),
    14: ("tenant.deleted", seq(TENANT)),
    15: ("project.put", seq(PROJECT, TENANT, TEXT)),
    16: ("project.deleted", seq(PROJECT)),
    17: ("user.put", seq(USER, TENANT, TEXT)),
    18: ("user.deleted", seq(USER)),
    19: ("quota.updated", seq(
        QUOTA, TENANT, option(PROJECT), option(CLASS), option(POOL),
        choice("node scope", {0: seq(), 1: NODE, 2: seq()}), option(PRIORITY),
        enum("measure", 4), LIMIT, added({
            1: enum("resource kind", 5), 2: HOLDERS, 4: HOLDERS, 8: seq(), 16: seq(LIMIT, INSTANT), 32: seq()}))),
    20: ("quota.deleted", seq(QUOTA)),
    21: ("quota.burst_ended", seq(QUOTA)),
    22: ("rate_card.put", seq(
        CARD, option(POOL), INSTANT, CURRENCY, PRICE, PRICE, PRICE, PRICE, PRICE, rising(CLASS, PRICE),
        rising(TEXT, FACTOR, str.encode), FACTOR, FACTOR, FACTOR, added({1: PERIODS}))),
    23: ("rate_card.deleted", seq(CARD)),
    24: ("charge_policy.put", seq(POLICY, INSTANT, CHARGE, CHARGE, CHARGE, CHARGE)),
    25: ("quota.budgets_updated", seq(TENANT, option(V64), option(V64), V32, option(V32), option(V64), option(V64))),
    26: ("pool.placement_put", seq(POOL, option(WEIGHTS))),
    27: ("settings.placement_changed", seq(SPAN)),
    28: ("settings.sensitive_changed", seq(option(V64))),
    30: ("node.put", seq(NODE, TEXT, POOL, option(TEXT), option(TEXT), items(seq(TEXT, TEXT)), enum("teardown", 2),
                         items(seq(CLASS, V64)))),
    31: ("node.deleted", seq(NODE)),
    32: ("node.drained", seq(NODE, WITH_REASON)),
    33: ("node.resumed", seq(NODE, WITH_REASON)),
    34: ("node.lost", seq(NODE, INSTANT)),
    35: ("node.returned", seq(NODE)),
    36: ("node.condition", seq(NODE, LEVEL, LEVEL, BOOL)),
    37: ("node.agent_registered", seq(NODE, V64, lambda r: r.take(16))),
    38: ("node.agent_detached", seq(NODE)),
    40: ("lease.granted", GRANTED),
    41: ("lease.denied", seq(
        option(POOL), items(seq(CLASS, V64), 0, 16), SPAN, PRIORITY, VERSION, CAUSE, PARTICULARS)),
    42: ("lease.renewed", RENEWED),
    43: ("lease.released", seq(REPORTED, BOOL)),
    44: ("lease.expired", seq(LEASES, BOOL, BELONGS_TO)),
    45: ("lease.revoked", seq(LEASES, SPAN, BELONGS_TO)),
    46: ("lease.teardown_started", seq(LEASES, enum("cause", 2), BOOL, BELONGS_TO)),
    47: ("lease.torn_down", seq(NODE, LEASES, BELONGS_TO)),
    48: ("lease.fenced", seq(LEASES, BELONGS_TO)),
    49: ("lease.unfenced", seq(LEASES, added({1: BELONGING, 2: TEXT}))),
    50: ("lease.activity", seq(REPORTED)),
    51: ("lease.preempted", seq(NODE, PRIORITY, VERSION, LEASES)),
    52: ("preemption.decided", seq(
        V64, PRIORITY, VERSION, items(seq(NODE, MEMBERS), 1, 1024), LEASES, added({1: QUOTA}))),
    53: ("reservation.dropped", seq(V64)),
    60: ("token.issued", seq(
        TOKEN, TEXT, KEY, enum("role", 7), option(TENANT), option(PROJECT), option(USER), option(NODE),
        items(V64, 0, 64), option(INSTANT))),
    61: ("token.revoked", seq(TOKEN)),
    70: ("allocation.submitted", seq(SPEC, added({1: OVER_QUOTA, 2: NODE}))),
    71: ("allocation.denied", seq(SPEC, VERSION, CAUSE, added({1: OVER_QUOTA}))),
    72: ("allocation.placed", seq(V64, V32, V64, V32, VERSION)),
    73: ("allocation.started", seq(V64)),
    74: ("allocation.checkpointing", seq(V64)),
    75: ("allocation.checkpointed", seq(V64, V64, SPAN)),
    76: ("allocation.suspended", seq(V64, ATTEMPT_END)),
    77: ("allocation.requeued", seq(V64, ATTEMPT_END)),
    78: ("allocation.completed", seq(V64, option(V32), V64)),
    79: ("allocation.failed", seq(V64, ATTEMPT_END, option(V32), V64)),
    80: ("allocation.cancelled", seq(V64)),
    90: ("node.claimed", seq(NODES, added({1: INSTANT}))),
    91: ("node.released", seq(NODES, CLAIM)),
    92: ("node.wiped", seq(NODE, CLAIM)),
    93: ("node.quarantined", seq(NODE, enum("cause of a quarantine", 2), CLAIM)),
    94: ("node.quarantine_cleared", seq(NODE)),
    100: ("ceiling.put", seq(PROJECT, option(V64), AMOUNT, CURRENCY, enum("mode", 2))),
    101: ("ceiling.deleted", seq(PROJECT, option(V64))),
    110: ("reservation.taken_over", seq(
        V64, PRIORITY, VERSION, items(seq(NODE, MEMBERS), 1, 1024), ANY_LEASES, ANY_LEASES, LEASES)),
    111: ("head.protected", seq(V64, VERSION, NODE_SET)),
    112: ("pool.queue_put", seq(POOL, SPAN, V32)),
    113: ("settings.queue_changed", seq(SPAN)),
    114: ("project.pool_put", seq(PROJECT, POOL, enum("pool access", 3))),
    115: ("lease.end_corrected", seq(V64, LEASES, BELONGING)),
    116: ("quota.until_reached", seq(QUOTA)),
    117: ("claim.end_corrected", seq(V64, NODE, V64)),
    118: ("allocation.hold_set", seq(V64, BOOL, WITH_REASON)),
    119: ("allocation.hold_cleared", seq(V64)),
    120: ("allocation.changed", seq(V64, SPEC)),
    121: ("node.empty", seq(NODE, INSTANT)),
    122: ("node.loss_settled", seq(V64, NODE)),
    123: ("window.put", seq(V32, NODES, INSTANT, INSTANT, option(TEXT))),
    124: ("window.started", seq(V32, NODES)),
    125: ("window.ended", seq(V32, NODES, BOOL, BOOL)),
    126: ("lease.window_announced", seq(V32, INSTANT, INSTANT, option(TEXT), LEASES, BELONGING, added({1: BOOL}))),
    130: ("journal.restored", seq(V64, INSTANT)),
}
REASON = choice("reason", {1: V64, 2: QUOTA, 3: seq(), 4: seq(), 5: seq(), 6: seq(), 7: seq()})


@dataclass
class Record:
    previous: bytes
    sequence: int
    stamp: int
    kind: int
    effective: int
    parts: dict[int, Any]
    body: Any  # None for an unknown kind

    @property
    def signers(self) -> list[bytes]:
        return self.parts.get(10, [])


def decode_record(hashed: bytes) -> Record:
    """The head is decoded for every kind; the body only for those the page lists."""
    r = Reader(hashed)
    previous, sequence, stamp, kind, bits = r.take(32), r.varint(), r.instant(), r.varint(bits=32), r.varint()
    if bits >> 12:
        raise Malformed(f"optional parts {bits:#x} above bit 11")
    readers: list[Parser] = [SPAN, TENANT, PROJECT, USER, TOKEN, REASON,
                             lambda q: (option(TENANT)(q), q.take(q.count(1, 64, "bytes of idempotency key")), q.take(16)),
                             TEXT, TEXT, TEXT, items(KEY, 1, 2), seq()]
    parts = {i: p(r) for i, p in enumerate(readers) if bits >> i & 1}
    if parts.get(0) == 0:
        raise Malformed("effective instant written out although it equals the stamp")
    if parts.get(0, 0) > stamp:
        raise Malformed("effective instant before 1970")
    body = None
    if kind in KINDS:
        body = KINDS[kind][1](r)
        if r.pos != len(hashed):
            raise Malformed(f"{len(hashed) - r.pos} bytes left over after {KINDS[kind][0]}")
    return Record(previous, sequence, stamp, kind, stamp - parts.get(0, 0), parts, body)


# ---------------------------------------------------------------- the tree (RFC 6962)

class Frontier:
    """The roots of the perfect subtrees of a growing tree, largest first."""

    def __init__(self, size: int = 0, parts: Optional[list[bytes]] = None) -> None:
        self.size, self.parts = size, list(parts or [])

    def append(self, record_hash: bytes) -> None:
        node, size = sha256(b"\0", record_hash), self.size
        while size & 1:
            node, size = sha256(b"\1", self.parts.pop(), node), size >> 1
        self.parts.append(node)
        self.size += 1

    def root(self) -> bytes:
        if not self.parts:
            return sha256(b"")
        node = self.parts[-1]
        for left in reversed(self.parts[:-1]):
            node = sha256(b"\1", left, node)
        return node


# ---------------------------------------------------------------- signed notes

def decimal(text: str) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,19}", text, re.ASCII) or int(text) >= U64:
        raise Malformed(f"not a plain decimal number: {text[:40]!r}")
    return int(text)


def hex_bytes(text: str, n: int) -> bytes:
    if not re.fullmatch(f"[0-9a-f]{{{2 * n}}}", text):
        raise Malformed(f"not {2 * n} lower-case hex digits: {text[:80]!r}")
    return bytes.fromhex(text)


def base64_bytes(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("bad base64") from None
    if base64.b64encode(raw).decode() != text:
        raise Malformed("base64 that is not canonical")
    return raw


def key_id(name: str, kind: int, key: bytes) -> bytes:
    return sha256(name.encode(), b"\n", bytes([kind]), key)[:4]


def check_key_name(name: str) -> str:
    if not name or "+" in name or any(c.isspace() for c in name):
        raise Malformed(f"not a C2SP key name: {name!r}")
    return name


def parse_vkey(text: str, kind: int) -> tuple[str, bytes]:
    """A C2SP verifier key, `name+hash+base64(type, key)`; base64 may itself hold a plus."""
    pieces = text.split("+", 2)
    if len(pieces) != 3:
        raise Malformed(f"not a verifier key: {text!r}")
    name, raw = check_key_name(pieces[0]), base64_bytes(pieces[2])
    if len(raw) != 33 or raw[0] != kind:
        raise Malformed(f"verifier key {name} is not an Ed25519 key of type {kind}")
    if hex_bytes(pieces[1], 4) != key_id(name, kind, raw[1:]):
        raise Malformed(f"verifier key {name}: the key id does not fit the key")
    return name, raw[1:]


@dataclass
class Checkpoint:
    text: bytes
    origin: str
    size: int
    root: bytes
    signatures: list[tuple[str, bytes]]

    @classmethod
    def parse(cls, raw: bytes) -> "Checkpoint":
        try:
            note = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise Malformed("checkpoint is not UTF-8") from None
        if any(c < " " and c != "\n" for c in note):
            raise Malformed("checkpoint with control characters")
        split = note.rfind("\n\n")
        if split < 0 or not note.endswith("\n"):
            raise Malformed("checkpoint without signature lines")
        text, tail = note[:split + 1], note[split + 2:]
        lines = text.split("\n")[:-1]
        if len(lines) != 3 or not lines[0]:
            raise Malformed("checkpoint does not have exactly origin, size and root")
        root = base64_bytes(lines[2])
        if len(root) != 32:
            raise Malformed("checkpoint's root is not 32 bytes")
        signatures = []
        for line in tail.split("\n")[:-1]:
            pieces = line.split(" ")
            if len(pieces) != 3 or pieces[0] != "\u2014":
                raise Malformed("checkpoint with a malformed signature line")
            blob = base64_bytes(pieces[2])
            if len(blob) < 5:
                raise Malformed("checkpoint with a signature that is too short")
            signatures.append((check_key_name(pieces[1]), blob))
        if not 1 <= len(signatures) <= 16:  # OPEN: what signed-note asks of everybody; the page gives no limit
            raise Malformed(f"checkpoint with {len(signatures)} signatures")
        return cls(text.encode(), lines[0], decimal(lines[1]), root, signatures)

    def signed_by(self, name: str, key: bytes) -> bool:
        """By a log's key. Lines of other keys are ignored; a line of this key that does not fit is fatal."""
        return self._signed(name, key_id(name, ED25519, key), lambda s: signature_fits(key, s, self.text))

    def cosigned_by(self, name: str, key: bytes) -> bool:
        def fits(s: bytes) -> bool:
            time = int.from_bytes(s[:8], "big")
            return len(s) == 72 and time < 1 << 63 and signature_fits(
                key, s[8:], b"cosignature/v1\ntime %d\n" % time + self.text)
        return self._signed(name, key_id(name, COSIGNATURE_V1, key), fits)

    def _signed(self, name: str, kid: bytes, fits: Callable[[bytes], bool]) -> bool:
        mine = [blob[4:] for n, blob in self.signatures if n == name and blob[:4] == kid]
        if not all(fits(s) for s in mine):
            raise Malformed(f"checkpoint of size {self.size}: the signature of {name} ({kid.hex()}) is wrong")
        return bool(mine)


# ---------------------------------------------------------------- anchor, tree and trust files

def sealed_lines(raw: bytes, first: str, newest: int = 1) -> tuple[int, list[str], Checkpoint]:
    """Checks the `end` line; returns the version, the lines before `checkpoint`, less the first one, and the note."""
    start = raw.rfind(b"\nend ", 0, len(raw)) + 1
    if start == 0 or raw[start:] != b"end " + sha256(raw[:start]).hex().encode() + b"\n":
        raise Malformed("its `end` line does not fit")
    head, mark, note = raw[:start].partition(b"\ncheckpoint\n")
    if newest > 1 and head.startswith(first.encode() + b"2\n"):
        note, _, mac = note[:-1].rpartition(b"\n")
        note += b"\n"
        if not re.fullmatch(b"mac [0-9a-f]{64}", mac):
            raise Malformed("its last line but one is not a `mac` line")
    try:
        lines = head.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None
    number = re.fullmatch(re.escape(first) + "([1-9][0-9]*)", lines[0])
    version = int(number[1]) if number else 0
    if not 1 <= version <= newest:
        raise (NewerFormat if version else Malformed)(f"begins with {lines[0][:40]!r} (another format version?)")
    if not mark:
        raise Malformed("no `checkpoint` line")
    return version, lines[1:], Checkpoint.parse(note)


def fields_of(lines: list[str], names: list[str]) -> list[str]:
    """The values of `name value` lines that must come in exactly this order."""
    pairs = [line.partition(" ") for line in lines]
    if [p[0] for p in pairs] != names or any(p[1] != " " for p in pairs):
        raise Malformed(f"lines are {[p[0] for p in pairs]}, not {names}")
    return [p[2] for p in pairs]


@dataclass
class Anchor:
    counter: int
    origin: str
    size: int
    head: bytes
    root: bytes
    key_id: str
    checkpoint: Checkpoint


def parse_anchor(raw: bytes) -> Anchor:
    version, lines, note = sealed_lines(raw, "leasehold-anchor v", newest=2)
    state = [] if version == 1 else ["state"]
    v = fields_of(lines, ["counter", "origin", "epoch", *state, "size", "head", "root", "key", "time"])
    if state and v.pop(3) not in ("open", "closed"):
        raise Malformed("its state is neither open nor closed")
    decimal(v[2]), decimal(v[7])  # epoch and time: checked for form only, the page ties them to nothing
    return Anchor(decimal(v[0]), v[1], decimal(v[3]), hex_bytes(v[4], 32), hex_bytes(v[5], 32), v[6], note)


def read_anchor(path: Path) -> tuple[Anchor, list[str]]:
    """The slot that counts, and what is to be said of the other."""
    if not path.is_file():
        raise Bad("there is no anchor", file="anchor")
    data = path.read_bytes()
    if len(data) > 2 * SLOT:
        raise Bad(f"the anchor is {len(data)} bytes long, more than two slots", file="anchor")
    found: list[tuple[Anchor, bytes]] = []
    reasons: list[str] = []
    for n in (0, 1):
        raw = data[n * SLOT:(n + 1) * SLOT].rstrip(b"\0")
        try:
            found.append((parse_anchor(raw), raw))
        except NewerFormat as e:  # OPEN: it is not passed over for the other one
            raise Bad(f"anchor, slot {n}: {e}", file="anchor") from None
        except Malformed as e:  # OPEN: also one whose `end` line fits, but whose lines are not those of an anchor
            reasons.append(f"slot {n} of the anchor: " + (str(e) if raw else "never written"))
    if not found:
        raise Bad("no slot of the anchor fits: " + "; ".join(reasons), file="anchor")
    if len(found) == 2 and found[0][0].counter == found[1][0].counter and found[0][1] != found[1][1]:
        raise Bad("both slots of the anchor have the same counter and differ", file="anchor")
    anchor = max(found, key=lambda a: a[0].counter)[0]
    if (anchor.checkpoint.size, anchor.checkpoint.root) != (anchor.size, anchor.root):
        raise Bad("the anchor's lines and its checkpoint do not agree", file="anchor")
    return anchor, reasons


@dataclass
class TreeFile:
    size: int
    head: bytes
    parts: list[bytes]
    checkpoint: Checkpoint
    name: str


def read_tree(path: Path) -> TreeFile:
    try:
        _, lines, note = sealed_lines(path.read_bytes(), "leasehold-tree v")
        v = fields_of(lines, ["size", "head"] + ["part"] * (len(lines) - 2))
        tree = TreeFile(decimal(v[0]), hex_bytes(v[1], 32), [hex_bytes(p, 32) for p in v[2:]], note, path.name)
        if len(tree.parts) != tree.size.bit_count():
            raise Malformed(f"{len(tree.parts)} parts for size {tree.size}")
        if note.size != tree.size or note.root != Frontier(tree.size, tree.parts).root():
            raise Malformed("its parts do not make the root of its checkpoint")
        return tree
    except Malformed as e:
        raise Bad(f"tree file {path.name}: {e}", file=path.name) from None


@dataclass
class Trust:
    origin: str
    keys: list[bytes]
    witnesses: list[tuple[str, bytes]]
    pinned: Optional[Checkpoint]
    required: int = 0  # how many distinct witnesses must have cosigned the anchor's checkpoint


def read_trust(path: Path) -> Trust:
    try:
        return parse_trust(path.read_bytes(), str(path))
    except OSError as e:
        raise UsageError(f"trust file {path}: {e}") from None


def parse_trust(raw: bytes, path: str) -> Trust:
    try:
        if b"\r" in raw:
            raise Malformed("a carriage return; lines end with a line feed alone")
        head, mark, note = raw.partition(b"\ncheckpoint\n")
        text = (head + b"\n" if mark else raw).decode("utf-8")
        if not text.endswith("\n"):
            raise Malformed("the last line does not end")
        lines = [line for line in text.split("\n")[:-1] if line.strip() and not line.startswith("#")]
        if not lines or lines[0] != "leasehold-trust v1":
            raise Malformed("it does not begin with `leasehold-trust v1`")
        values: dict[str, list[str]] = {"origin": [], "key": [], "witness": [], "require": []}
        for line in lines[1:]:
            name, space, value = line.partition(" ")
            if name not in values or not space:
                raise Malformed(f"a line it should not have: {line[:60]!r}")
            values[name].append(value)
        if len(values["origin"]) != 1:
            raise Malformed("it needs one origin line")
        origin = check_key_name(check_text(values["origin"][0].encode()))
        keys = [parse_vkey(v, ED25519) for v in values["key"]]
        if any(name != origin for name, _ in keys):
            raise Malformed("a key whose name is not the origin")
        witnesses = [parse_vkey(v, COSIGNATURE_V1) for v in values["witness"]]
        if len(values["require"]) > 1:
            raise Malformed("a second require line")
        required = decimal(values["require"][0]) if values["require"] else 0
        if not values["key"]:
            raise NoKey(f"trust file {path}: it needs at least one key line")
        if values["require"] and not 1 <= required <= len({key for _, key in witnesses}):
            raise Malformed(f"{required} witnesses are required, and {len(witnesses)} are named")
        return Trust(origin, [k for _, k in keys], witnesses, Checkpoint.parse(note) if mark else None, required)
    except (UnicodeDecodeError, Malformed) as e:
        raise UsageError(f"trust file {path}: {e}") from None


# ---------------------------------------------------------------- segments and batches

@dataclass
class Frame:
    offset: int
    hashed: bytes
    signatures: list[bytes]


@dataclass
class Batch:
    payload: bytes  # the frames
    count: int
    start: int  # offset of the first frame
    end: int


def sealed_batch(data: bytes, at: int, version: int) -> Optional[Batch]:
    """The batch at this offset if magic, length and checksum fit."""
    head = data[at:at + BATCH_HEADER]
    if len(head) < BATCH_HEADER or head[:4] != MAGIC[version]:
        return None
    length, count, crc = (int.from_bytes(head[i:i + 4], "little") for i in (4, 8, 12))
    if length > MAX_PAYLOAD or at + BATCH_HEADER + length > len(data):
        return None
    payload = data[at + BATCH_HEADER:at + BATCH_HEADER + length]
    if zlib.crc32(payload, zlib.crc32(head[4:12])) != crc:
        return None
    start = at + BATCH_HEADER
    return Batch(payload[MAC[version]:], count if length >= MAC[version] else 0, start + MAC[version], start + length)


def good_batch_after(data: bytes, begin: int, sequence: int, versions: Iterable[int]) -> Optional[int]:
    """Where a good batch of records of that sequence and later ones begins, at this offset or after it."""
    for version in versions:
        at = begin
        while (at := data.find(MAGIC[version], at)) >= 0:
            if batch := sealed_batch(data, at, version):
                try:
                    if min([decode_record(f.hashed).sequence for f in frames_of(batch)]) >= sequence:
                        return at
                except Malformed:
                    pass
            at += 1
    return None


def frames_of(batch: Batch) -> Iterator[Frame]:
    payload, count = batch.payload, batch.count
    r = Reader(payload)
    if not 1 <= count <= MAX_COUNT:
        raise Malformed(f"a batch of {count} records")
    for _ in range(count):
        offset = batch.start + r.pos
        word = int.from_bytes(r.take(4), "little")
        length, signatures = word >> 2, word & 3
        if not MIN_RECORD <= length <= MAX_RECORD or signatures > 2:
            raise Malformed(f"a frame of {length} bytes with {signatures} signatures")
        yield Frame(offset, r.take(length), [r.take(64) for _ in range(signatures)])
    if r.pos != len(payload):
        raise Malformed(f"{len(payload) - r.pos} bytes of the batch belong to no record")


def first_frame(data: bytes, at: int, version: int) -> list[Optional[Frame]]:
    """The first record of the batch at this offset, to look at only; [None] if there is none."""
    batch = sealed_batch(data, at, version)
    try:
        return [next(frames_of(batch))] if batch else [None]
    except Malformed:
        return [None]


@dataclass
class Folder:
    segments: dict[int, Path] = field(default_factory=dict)
    trees: dict[int, list[Path]] = field(default_factory=dict)

    @classmethod
    def scan(cls, data_folder: Path, archives: list[Path]) -> "Folder":
        """An archive holds the files itself or in `journal/`; of a segment in several places the data folder's counts."""
        found = cls()
        for place in [data_folder / "journal", *(p for a in archives for p in (a, a / "journal"))]:
            for path in sorted(place.iterdir()) if place.is_dir() else []:
                m = re.fullmatch(r"([0-9]{8})\.(seg|tree)", path.name, re.ASCII)
                if m and (number := int(m[1])):
                    if m[2] == "seg":
                        found.segments.setdefault(number, path)
                    else:
                        found.trees.setdefault(number, []).append(path)
        return found


# ---------------------------------------------------------------- the pass

class Verifier:
    def __init__(self, data_folder: Path, trust: Trust, archives: list[Path]) -> None:
        self.trust = trust
        self.folder = Folder.scan(data_folder, archives)
        self.anchor_path = data_folder / "anchor"
        self.tree = Frontier()
        self.first = 0  # sequence of the first record at hand
        self.head, self.stamp = ZERO32, 0
        self.key: Optional[bytes] = None  # the one that signs checkpoints of the present size
        self.segment = 0
        self.version = 0  # of the segment; 0 before the first
        self.due = self.converts = False  # whether the record before was of an earlier version, or is not at hand
        self.begins = 0  # sequence of the segment's first record
        self.epoch = 0
        self.torn: Optional[dict] = None
        self.opened = 0  # the last segment with a header that fits
        self.unknown = self.rotations = 0
        self.notes: list[str] = []
        self.missing_witnesses: list[str] = []
        self.warnings: list[str] = []
        self.proved: dict[str, Optional[int]] = {"pinned_checkpoint": None, "witness": None, "anchor": None}

    def fail(self, why: str, offset: Optional[int] = None, sequence: Optional[int] = None) -> NoReturn:
        path = self.folder.segments.get(self.segment)
        raise Bad(why, sequence=self.tree.size if sequence is None else sequence, segment=self.segment or None,
                  offset=offset, file=path.name if path else None)

    def run(self) -> None:
        self.anchor, self.notes = read_anchor(self.anchor_path)
        if self.anchor.origin != self.trust.origin:
            raise Bad(f"the anchor is of {self.anchor.origin!r}, not {self.trust.origin!r}", file="anchor")
        numbers = sorted(self.folder.segments)
        if not (self.anchor_path.parent / "journal").is_dir():
            raise Bad("there is no journal folder")
        for a, b in zip(numbers, numbers[1:]):
            if b != a + 1:
                raise Bad(f"segment {a + 1} is missing", segment=a + 1)
        begun = next((n for n in reversed(numbers) if self.load(n).strip(b"\0")), 0)
        self.enter(numbers[0] if numbers else 1)
        for number in numbers:
            if number <= begun:
                self.segment = number
                self.walk(number, self.load(number), last=number == begun)
        if left := [n for n in self.folder.trees if n > self.opened]:  # written when its segment held a record
            raise Bad(f"the journal was cut: {min(left):08}.tree is there, the records of its segment are not",
                      sequence=self.tree.size, file=f"{min(left):08}.tree")
        if self.anchor.size > self.tree.size:
            self.fail(f"the journal was cut: the anchor knows {self.anchor.size} records, here are {self.tree.size}")
        if self.trust.pinned and self.trust.pinned.size > self.tree.size:
            self.fail(f"the journal was cut: the pinned checkpoint knows {self.trust.pinned.size} records, "
                      f"here are {self.tree.size}")

    def load(self, number: int) -> bytes:
        return self.folder.segments[number].read_bytes()

    def enter(self, number: int) -> None:
        """Sets the state before the first segment at hand."""
        self.segment = number
        if number > 1:
            if number not in self.folder.trees:
                raise Bad(f"the journal begins with segment {number}, but {number:08}.tree is missing", segment=number)
            tree = read_tree(self.folder.trees[number][0])
            if tree.size == 0:
                raise Bad(f"{tree.name} says that no record lies before its segment", segment=number, file=tree.name)
            self.note(tree.checkpoint, tree.name, self.trust.keys)
            # The first signature of the log is that of the key in force; an older key may follow.
            first = next(blob[:4] for name, blob in tree.checkpoint.signatures if name == self.trust.origin)
            in_force = [k for k in self.trust.keys if key_id(self.trust.origin, ED25519, k) == first]
            if not in_force:
                raise Bad(f"{tree.name} is signed first by {first.hex()}, which is not a trusted key",
                          sequence=tree.size, segment=number, file=tree.name)
            self.tree, self.head, self.key = Frontier(tree.size, tree.parts), tree.head, in_force[0]
            self.first = tree.size
            self.notes.append(f"records before {tree.size} are not at hand; the tree file stands for them")
            for what, size in (("anchor", self.anchor.size),
                               ("pinned checkpoint", self.trust.pinned.size if self.trust.pinned else U64)):
                if size < tree.size:
                    raise Bad(f"the {what} is of size {size}, before the first record at hand ({tree.size}): "
                              "it cannot be compared without the archive", sequence=tree.size, segment=number)
        self.arrived()

    def note(self, c: Checkpoint, name: str, keys: list[bytes]) -> list[bytes]:
        """Origin and signatures of a checkpoint: which of these keys signed it, and none of them wrongly."""
        try:
            if c.origin != self.trust.origin:
                raise Malformed(f"checkpoint of {c.origin!r}, not {self.trust.origin!r}")
            signers = [k for k in dict.fromkeys(keys) if c.signed_by(self.trust.origin, k)]
            if not signers:
                raise Malformed(f"checkpoint of size {c.size} is not signed by the key in force, "
                                + " or ".join(key_id(self.trust.origin, ED25519, k).hex() for k in keys))
            return signers
        except Malformed as e:
            raise Bad(f"{name}: {e}", sequence=max(c.size - 1, 0), segment=self.segment, file=name) from None

    def check_trees(self, number: int) -> None:
        for path in self.folder.trees.get(number, []):
            if number == 1:
                raise Bad("nothing lies before the first segment; it has no tree file", segment=1, file=path.name)
            tree = read_tree(path)
            if (tree.size, tree.head, tree.parts) != (self.tree.size, self.head, self.tree.parts):
                raise Bad(f"{path.name} describes another journal than the {self.tree.size} records before its segment",
                          sequence=self.tree.size, segment=number, file=path.name)
            self.note(tree.checkpoint, path.name, self.keys_in_force())

    def walk(self, number: int, data: bytes, last: bool) -> None:
        end = len(data.rstrip(b"\0"))  # only zeroes after this
        at = self.header(number, data, last)
        if at is None:
            return
        self.check_trees(number)
        self.opened = number
        start = self.tree.size
        while at < end:
            batch = sealed_batch(data, at, self.version)
            if batch is None:
                later = good_batch_after(data, at + 1, self.tree.size, [self.version])
                self.maybe_torn(later, at, end, last, "no good batch, and not the torn end of one")
                break
            offset, at = at, batch.end
            try:
                frames = list(frames_of(batch))
                for frame, later in zip(frames, frames[1:] + first_frame(data, at, self.version)):
                    offset = frame.offset
                    self.record(frame, later)
            except Malformed as e:
                self.fail(str(e), offset)
        if self.tree.size == start and not last:
            self.fail("a segment without batches before the last one", SEGMENT_HEADER)

    def maybe_torn(self, later: Optional[int], at: int, end: int, last: bool, why: str) -> None:
        if not last:
            self.fail(why + " (other segments follow)", at)
        if later is not None:
            self.fail(why + f" (a good batch follows at {later})", at)
        if self.anchor.size > self.tree.size:
            self.fail(why + f" (the anchor knows {self.anchor.size} records)", at)
        if self.trust.pinned and self.trust.pinned.size > self.tree.size:
            self.fail(why + f" (the pinned checkpoint knows {self.trust.pinned.size} records)", at)
        self.torn = {"segment": self.segment, "offset": at, "bytes": end - at}

    def header(self, number: int, data: bytes, last: bool) -> Optional[int]:
        h = data[:SEGMENT_HEADER]
        if len(h) < SEGMENT_HEADER or zlib.crc32(h[:92]) != int.from_bytes(h[92:], "little"):
            possible = FORMAT_VERSIONS[max(self.version, 1) - 1:]  # a later version may begin here, an earlier one not
            later = good_batch_after(data, 0, self.tree.size, possible)  # OPEN: of the missing records or later ones
            self.maybe_torn(later, 0, len(data.rstrip(b"\0")), last, "bad segment header")
            return None
        version, named = (int.from_bytes(h[i:i + 4], "little") for i in (8, 12))
        if h[:8] != b"LHSEGMNT":
            self.fail("not a segment", 0)
        if version not in FORMAT_VERSIONS:
            self.fail(f"format version {version}; this verifier knows {FORMAT_VERSIONS}", 8)
        if version < self.version:
            self.fail(f"format version {version} after {self.version}", 8)
        before, self.version, self.begins = self.version, version, self.tree.size
        self.due = 0 < before < version
        self.converts = self.due or before == 0 and self.tree.size > 0
        if named != number:
            self.fail(f"segment says that it is number {named}", 12)
        if int.from_bytes(h[16:24], "little") != self.tree.size:
            self.fail(f"segment begins with record {int.from_bytes(h[16:24], 'little')}, not {self.tree.size}", 16)
        self.first_link(data)
        if h[24:56] != self.head:
            self.fail("segment does not link to the record before it", 24)
        if h[56:88] != sha256(self.trust.origin.encode()):
            self.fail(f"segment is not of origin {self.trust.origin!r}", 56)
        if h[88:92] != bytes(4):
            self.fail("segment header with something in its zero bytes", 88)
        return SEGMENT_HEADER

    def first_link(self, data: bytes) -> None:
        """If the first record of a segment shows that the one before it was altered, that is what is wrong first."""
        batch = sealed_batch(data, SEGMENT_HEADER, self.version)
        try:
            frames = list(frames_of(batch)) if batch else []
            if frames and self.tree.size > self.first and decode_record(frames[0].hashed).sequence == self.tree.size:
                if frames[0].hashed[:32] != self.head:
                    self.broken_link(frames[0], frames[1] if len(frames) > 1 else None)
        except Malformed:
            pass  # it will be said in its place

    def broken_link(self, frame: Frame, later: Optional[Frame]) -> NoReturn:
        """Of two neighbours that do not fit, the one that does not fit its other neighbour either was altered."""
        own = self.tree.size == self.first or later is not None and later.hashed[:32] != sha256(frame.hashed)
        if own:
            self.fail("record does not link to the one before it", frame.offset)
        self.fail("record was altered: the next one carries another hash of it", sequence=self.tree.size - 1)

    def record(self, frame: Frame, later: Optional[Frame]) -> None:
        """Rules 1 to 5 for one record; Malformed becomes a failure at its place."""
        r = decode_record(frame.hashed)
        if r.sequence != self.tree.size:
            raise Malformed(f"record says sequence {r.sequence}, expected {self.tree.size}")
        if r.previous != self.head:
            self.broken_link(frame, later)
        if r.stamp < self.stamp:
            raise Malformed(f"stamp goes back from {self.stamp} to {r.stamp}")
        if (r.kind == 1) != (r.sequence == 0):
            raise Malformed("the first record, and no other, is a journal.genesis")
        if r.kind == 1 and 11 in r.parts:
            raise Malformed("the genesis record continues a command")
        first = r.sequence == self.begins
        if first and self.due and r.kind != 7:
            raise Malformed("the first segment of a new format version does not begin with a conversion record")
        if r.kind == 7 and not (first and self.converts and r.body[0] == self.version):
            raise Malformed("a conversion record that does not begin the first segment of its format version")
        if r.kind == 2:
            if r.body[0] <= self.epoch:
                raise Malformed(f"epoch {r.body[0]} after epoch {self.epoch}")
            self.epoch = r.body[0]
        digest = sha256(frame.hashed)
        if len(frame.signatures) != len(r.signers):
            raise Malformed(f"{len(frame.signatures)} signatures for {len(r.signers)} signers")
        for signer, signature in zip(r.signers, frame.signatures):
            if not signature_fits(signer, signature, RECORD_SIGNATURE_PREFIX + digest):
                raise Malformed(f"signature of {signer.hex()} is wrong")
        if r.kind == 1:
            version, origin, self.key, _software = r.body
            if version != self.version:
                raise Malformed(f"journal of format version {version} in a segment of version {self.version}")
            if origin != self.trust.origin:
                raise Malformed(f"journal of origin {origin!r}, not {self.trust.origin!r}")
            if self.key not in self.trust.keys:
                raise Malformed("the key pinned in the genesis record is not a trusted one")
        elif r.kind == 4:
            if r.signers != list(r.body):
                raise Malformed("key rotation that is not signed by its old and its new key")
            if r.body[0] != self.key:
                raise Malformed("key rotation whose old key is not the one in force")
            if r.body[1] == self.key:
                raise Malformed("key rotation to the key that is in force already")
            self.key, self.rotations = r.body[1], self.rotations + 1
        self.unknown += r.kind not in KINDS
        self.head, self.stamp = digest, r.stamp
        self.tree.append(digest)
        self.arrived()

    def keys_in_force(self) -> list[bytes]:
        """Before the first record, any key that the trust file names."""
        return self.trust.keys if self.key is None else [self.key]

    def arrived(self) -> None:
        """Rules 6 and 7, whenever the journal has grown to a size that somebody signed. Size 0 proves nothing."""
        size, pin = self.tree.size, self.trust.pinned
        if pin is not None and size == pin.size:
            self.note(pin, "trust file's checkpoint", self.keys_in_force())
            if pin.root != self.tree.root():
                self.fail(f"rewritten or forked: the root at size {size} is not that of the pinned checkpoint",
                          sequence=max(size - 1, 0))
            self.proved["pinned_checkpoint"] = size or None
        if size == self.anchor.size:
            if self.anchor.head != self.head:
                self.fail(f"rewritten: the head at size {size} is not the anchor's", sequence=max(size - 1, 0))
            if self.anchor.root != self.tree.root():
                self.fail(f"rewritten: the root at size {size} is not the anchor's", sequence=max(size - 1, 0))
            if self.anchor.key_id not in [key_id(self.trust.origin, ED25519, k).hex() for k in self.keys_in_force()]:
                raise Bad("the anchor names another key than the one in force", sequence=max(size - 1, 0), file="anchor")
            self.note(self.anchor.checkpoint, "anchor", self.keys_in_force())
            self.proved["anchor"] = size
            try:
                cosigned = [w for w in self.trust.witnesses if self.anchor.checkpoint.cosigned_by(*w)]
                if cosigned and size:
                    self.proved["witness"] = size
                missing = [name for name, key in self.trust.witnesses if (name, key) not in cosigned]
                # One key under two names is one witness.
                if len({key for _, key in cosigned}) < self.trust.required:
                    raise Malformed(f"{self.trust.required} witnesses are required; missing: {', '.join(missing)}")
                self.missing_witnesses = missing
            except Malformed as e:
                raise Bad(f"anchor: {e}", file="anchor") from None


STAMP_TOLERANCE = 60 * 10**9
"""Nanoseconds by which the last stamp may be ahead of this machine's clock."""


def verify(data_folder: Path, trust: Trust, archives: Optional[list[Path]] = None, now: Optional[int] = None) -> dict:
    """The whole judgement as one JSON-ready object. `now` is the clock, in nanoseconds since 1970."""
    now = time.time_ns() if now is None else now
    v = Verifier(data_folder, trust, archives or [])
    bad: Optional[dict] = None
    try:
        v.run()
    except Bad as e:
        bad = e.where
    except OSError as e:
        bad = Bad(f"cannot be read: {e}", segment=v.segment or None).where
    if bad is None and v.stamp > now + STAMP_TOLERANCE:
        v.warnings.append("stamp_in_future")
    # Evidence from outside the folder comes first, however old; the larger size, at a tie the pin.
    outside = [(v.proved[k] or 0, k) for k in ("witness", "pinned_checkpoint") if v.proved[k] is not None]
    complete_to, proved_by = max(outside, key=lambda p: p[0] + (p[1] == "pinned_checkpoint") / 2) if outside else (
        v.proved["anchor"] or 0, "anchor")
    return {
        "ok": bad is None, "origin": trust.origin,
        "records": v.tree.size, "first_sequence": v.first,
        "complete_to": complete_to if bad is None else 0, "proved_by": proved_by if bad is None else None,
        "chained_not_signed": v.tree.size - (v.proved["anchor"] or 0) if bad is None else None,
        "proofs": v.proved, "segments": len(v.folder.segments), "rotations": v.rotations,
        "unknown_kinds": v.unknown, "missing_witnesses": v.missing_witnesses, "torn": v.torn, "notes": v.notes,
        "warnings": v.warnings, "first_bad": bad,
    }


def main(argv: Optional[list[str]] = None) -> int:
    p = argparse.ArgumentParser(description="Verify a journal (second, independent implementation).")
    p.add_argument("folder", type=Path, metavar="DATA_FOLDER")
    p.add_argument("--trust", type=Path, required=True, metavar="FILE")
    p.add_argument("--archive", type=Path, action="append", default=[], metavar="DIR")
    p.add_argument("--json", action="store_true")
    args = p.parse_args(argv)
    try:
        for folder in [args.folder, *args.archive]:
            if not folder.is_dir():
                raise UsageError(f"not a folder: {folder}")
        result = verify(args.folder, read_trust(args.trust), args.archive)
    except UsageError as e:
        print(f"verify.py: {e}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(result, ensure_ascii=False))
    elif result["ok"]:
        print(f"ok: {result['origin']}: records {result['first_sequence']} to {result['records'] - 1}; "
              f"complete to size {result['complete_to']}, proved by {result['proved_by']}")
        if result["chained_not_signed"]:
            print(f"{result['chained_not_signed']} records after the checkpoint are chained, not signed")
        for name in result["missing_witnesses"]:
            print(f"warning: witness {name} has not cosigned the anchor's checkpoint")
        if result["torn"]:
            print("torn end, not counted: segment {segment}, offset {offset}, {bytes} bytes".format(**result["torn"]))
        print("\n".join(f"warning: {w}" for w in result["warnings"]), end="\n" if result["warnings"] else "")
        print("\n".join(f"note: {n}" for n in result["notes"]), end="\n" if result["notes"] else "")
    else:
        print("FAILED: record {sequence}, segment {segment}, offset {offset}, file {file}: {why}".format(**result["first_bad"]))
    return 0 if result["ok"] else 3


if __name__ == "__main__":
    sys.exit(main())
