"""Writes small journal folders: an encoder made from the format page alone, for tests only.

It shares no code with verify.py, so a slip in one is not hidden by the same slip in the other; both
come from docs/reference/journal-format.md. `Journal` collects records; `write()` puts the folder on
disk. Attacks are made by writing with other parameters (another key, a rewritten record) or by
editing what was written.

    python3 fixtures.py FOLDER      # writes data, archive and trust; and converted, converted-trust
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterable, Optional, Sequence, Union

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ORIGIN = "cluster-1.example.org"
T0 = 1_700_000_000_000_000_000


# ---------------------------------------------------------------- keys

class Key:
    """A deterministic Ed25519 key."""

    def __init__(self, seed: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(seed.encode()).digest())
        self.public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def key_id(self, name: str, kind: int = 1) -> bytes:
        return hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + self.public).digest()[:4]

    def vkey(self, name: str, kind: int = 1) -> str:
        return f"{name}+{self.key_id(name, kind).hex()}+{base64.b64encode(bytes([kind]) + self.public).decode()}"


# ---------------------------------------------------------------- primitive encodings

def uv(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n % 128 + 128)
        n //= 128
    out.append(n)
    return bytes(out)


def u8(n: int) -> bytes:
    return struct.pack("B", n)


def u64(n: int) -> bytes:
    return struct.pack("<Q", n)


def text(s: Union[str, bytes]) -> bytes:
    raw = s.encode() if isinstance(s, str) else s
    return uv(len(raw)) + raw


def scaled(value: int) -> bytes:
    for unit, size in enumerate((10**9, 10**6, 10**3)):
        if value % size == 0:
            return uv(value // size * 4 + unit)
    return uv(value * 4 + 3)


def opt(encoded: Optional[bytes]) -> bytes:
    return b"\0" if encoded is None else b"\1" + encoded


def many(encoded: Sequence[bytes]) -> bytes:
    return uv(len(encoded)) + b"".join(encoded)


def numbers(ns: Sequence[int]) -> list[bytes]:
    return [uv(n if i == 0 else n - ns[i - 1] - 1) for i, n in enumerate(ns)]


def leases(*ns: int) -> bytes:
    return many(numbers(ns))


def activity(covered: int, busy: int, active: int, waits: Sequence[int] = (0, 0, 0, 0, 0)) -> bytes:
    bits = sum(1 << i for i, w in enumerate(waits) if w)
    return scaled(covered) + scaled(busy) + scaled(active) + u8(bits) + b"".join(scaled(w) for w in waits if w)


def reported(rows: Sequence[tuple[int, Optional[bytes]]]) -> bytes:
    some = any(a is not None for _, a in rows)
    ns = numbers([n for n, _ in rows])
    return uv(len(rows)) + u8(some) + b"".join(n + (opt(a) if some else b"") for n, (_, a) in zip(ns, rows))


def renewed(rows: Sequence[tuple[int, int, Optional[bytes]]]) -> bytes:
    some = any(a is not None for _, _, a in rows)
    first = min(d for _, d, _ in rows)
    ns = numbers([n for n, _, _ in rows])
    return uv(len(rows)) + u8(some) + u64(first) + b"".join(
        n + scaled(d - first) + (opt(a) if some else b"") for n, (_, d, a) in zip(ns, rows))


SEC = 10**9
ACT = activity(60 * SEC, 123_456_789_012_345_678_901, 59 * SEC + 1, (0, 5 * SEC, 0, 0, 7))
# One or more bodies of every kind on the page, exercising every option and every choice.
SAMPLES: list[tuple[int, bytes]] = [
    (2, uv(1) + text("leasehold 0.1") + uv(3) + opt(None)),
    (2, uv(2) + text("leasehold 0.1") + uv(3) + opt(u64(T0) + u64(T0 + 5))),
    (3, b""),
    (5, u64(T0 + 99)),
    (6, scaled(86400 * SEC) + scaled(30 * SEC) + scaled(0) + scaled(1_500_000_000) + scaled(1)),
    (10, uv(1) + text("gpu.a100") + u8(1) + opt(text("bronze")) + uv(1000) + u8(1)),
    (10, uv(2) + text("cpu") + u8(2) + opt(None) + uv(1) + u8(0)),
    (11, uv(1) + text("main") + u8(1) + opt(scaled(SEC)) + opt(None) + opt(scaled(9)) + opt(None) * 3 + opt(scaled(SEC))),
    (11, uv(2) + text("pool b") + u8(2) + opt(None) * 6 + opt(None)),
    (12, uv(2)),
    (13, uv(1) + text("Müller & 子") + opt(text("tag-1")) + u8(3) + opt(uv(12345))),
    (13, uv(2) + text("t2") + opt(None) + u8(1) + opt(None)),
    (14, uv(2)),
    (15, uv(1) + uv(1) + text("proj")),
    (16, uv(1)),
    (17, uv(1) + uv(1) + text("user")),
    (18, uv(1)),
    (19, uv(1) + uv(1) + opt(None) * 3 + u8(0) + opt(None) + u8(1) + u8(1) + uv(500)),
    (19, uv(2) + uv(1) + opt(uv(1)) + opt(uv(2)) + opt(uv(3)) + u8(1) + uv(7) + opt(u8(2)) + u8(2) + u8(2) + uv(5)),
    (19, uv(3) + uv(1) + opt(None) * 3 + u8(2) + opt(None) + u8(3) + u8(3) + uv(5) + uv(9) + scaled(600 * SEC)),
    (20, uv(3)),
    (21, uv(2)),
    (30, uv(1) + text("node-1") + uv(1) + opt(text("r1")) + opt(text("z1")) + many([text("a") + text("b")])
     + u8(1) + many([uv(1) + uv(8000), uv(2) + uv(64)])),
    (30, uv(2) + text("node-2") + uv(1) + opt(None) * 2 + many([]) + u8(2) + many([])),
    (31, uv(2)), (32, uv(1)), (33, uv(1)), (34, uv(1) + u64(T0)), (35, uv(1)),
    (40, uv(1) + uv(1) + uv(1) + scaled(300 * SEC) + u8(2) + uv(3) + many([uv(1) + uv(500) + uv(3)]) + uv(0)),
    (40, uv(2) + uv(1) + uv(1) + scaled(300 * SEC) + u8(3) + uv(3)
     + many([uv(1) + uv(500) + uv(2**64 - 1), uv(2) + uv(1) + uv(0)])
     + uv(0x1FF) + bytes(range(16)) + uv(5) + uv(6) + uv(7) + uv(8) + many([uv(1), uv(2)]) + uv(4)),
    (41, opt(uv(1)) + many([uv(1) + uv(500)]) + scaled(SEC) + u8(1) + uv(3) + u8(1) + uv(1) + uv(2) + uv(3) + uv(4)),
    (41, opt(None) + many([]) + scaled(SEC) + u8(1) + uv(3) + u8(2) + uv(1) + u64(T0)),
    (41, opt(None) + many([]) + scaled(SEC) + u8(1) + uv(3) + u8(3) + uv(1) + uv(2) + uv(3)),
    (42, renewed([(1, T0 + 7, None), (4, T0, ACT), (5, T0 + SEC, None)])),
    (42, renewed([(9, T0, None)])),
    (43, reported([(1, ACT), (2, None)]) + u8(1)),
    (43, reported([(1, None), (200, None)]) + u8(0)),
    (44, leases(3, 4, 900) + u8(0)),
    (45, leases(3) + scaled(30 * SEC)),
    (46, leases(3) + u8(2) + u8(1)),
    (47, uv(1) + leases(3)),
    (48, leases(5)), (49, leases(5)), (50, reported([(6, ACT)])),
    (51, uv(1) + u8(3) + uv(3) + leases(6, 7)),
    (36, uv(1) + u8(0) + u8(2) + u8(1)), (36, uv(1) + u8(1) + u8(0) + u8(0)),
    (37, uv(1) + uv(300) + bytes(range(16))), (38, uv(1)),
    (60, uv(1) + text("root") + bytes(range(32)) + u8(1) + opt(None) * 4 + many([]) + opt(None)),
    (60, uv(2) + text("all of it") + bytes(range(32)) + u8(7) + opt(uv(1)) + opt(uv(2)) + opt(uv(3)) + opt(uv(4))
     + many([uv(n) for n in range(64)]) + opt(u64(T0))),
    (61, uv(2)),
    (22, uv(0) + opt(None) + u64(T0) + b"EUR" + uv(10**7) + uv(2 * 10**6) + uv(10**6) + uv(5 * 10**5) + uv(3 * 10**5)
     + many([]) + many([]) + uv(3 * 10**8) + uv(10**9) + uv(15 * 10**8)),
    (22, uv(1) + opt(uv(1)) + u64(T0 + SEC) + b"CHF" + uv(10**15) + uv(0) * 4 + many([uv(0) + uv(1), uv(2) + uv(10**15)])
     + many([text("a100") + uv(10**9), text("h100") + uv(10**12), text("ü") + uv(0)]) + uv(10**12) * 3),
    (23, uv(1)),
    (24, uv(0) + u64(T0) + u8(1) * 4),
    (24, uv(1) + u64(T0 + SEC) + u8(2) + u8(3) + scaled(90 * SEC) + u8(1) + u8(3) + scaled(0)),
    (19, uv(4) + uv(1) + opt(None) * 3 + u8(0) + opt(None) + u8(4) + u8(1) + uv(5)),
    (25, uv(1) + opt(None) * 2 + uv(90) + opt(None) * 3),
    (25, uv(2) + opt(uv(10**12)) + opt(uv(1)) + uv(366) + opt(uv(1000)) + opt(uv(7)) + opt(uv(0))),
    (26, uv(1) + opt(None)), (26, uv(300) + opt(uv(500) + uv(200) * 2 + uv(100))), (27, scaled(3600 * SEC)),
    (40, uv(9) + uv(1) * 2 + scaled(300 * SEC) + u8(2) + uv(3) + many([uv(1) + uv(7) + uv(1)]) + uv(0x600) + uv(0o43210)
     + u8(3) + uv(250) * 4),
    (52, uv(300) + u8(3) + uv(3) + many([uv(1) + many([uv(1) + uv(7) + uv(2), uv(2) + uv(9) + uv(0)]),
                                         uv(2) + many([uv(1) + uv(7) + uv(1)])]) + leases(6, 7)),
    (53, uv(300)),
    (70, opt(None) + many([uv(1) + uv(7)]) + uv(1) + u8(2) + opt(None) * 2 + u8(0) * 2 + many([]) + opt(None) * 3 + u8(0) * 2
     + opt(None) * 4),
    (70, opt(uv(1)) + many([uv(1) + uv(7), uv(2) + uv(9)]) + uv(300) + u8(3) + opt(scaled(3600 * SEC)) + opt(scaled(60 * SEC))
     + u8(1) * 2 + many([text("disk") + text("ssd")]) + opt(u8(3)) + opt(u8(1)) + opt(uv(0o43210)) + u8(1) * 2
     + opt(bytes(range(16))) + opt(uv(5)) + opt(uv(6)) + opt(uv(8))),
    (71, opt(uv(1)) + many([uv(1) + uv(7)]) + uv(4) + u8(1) + opt(scaled(SEC)) + opt(None) + u8(0) * 2 + many([]) + opt(None) * 3
     + u8(0) * 2 + opt(None) * 4 + uv(3) + u8(1) + uv(1) + uv(2) + uv(3) + uv(4)),
    (40, uv(9) + uv(1) * 2 + scaled(300 * SEC) + u8(2) + uv(3) + many([uv(1) + uv(7) + uv(1)]) + uv(0x800)
     + many([text("disk") + text("ssd")])),
    (41, opt(None) + many([uv(1) + uv(7)]) + scaled(SEC) + u8(1) + uv(3) + u8(3) + uv(1) + uv(2) + uv(3)),
    (41, opt(None) + many([uv(1) + uv(7)]) + scaled(SEC) + u8(1) + uv(3) + u8(3) + uv(1) + uv(2) + uv(3) + uv(0x1f) + uv(7)
     + many([text("disk") + text("ssd")]) + uv(0o43210) + uv(9)),
    (72, uv(300) + uv(2) + uv(42) + uv(16) + uv(3)),
    (73, uv(300)), (74, uv(300)), (75, uv(300) + uv(2**64 - 1) + scaled(75 * SEC)),
    (76, uv(300) + u8(1)), (77, uv(300) + u8(6)),
    (78, uv(300) + opt(uv(0)) + uv(2**30)), (78, uv(300) + opt(None) + uv(0)),
    (79, uv(300) + u8(5) + opt(uv(255)) + uv(1)), (80, uv(300)),
    (28, opt(None)), (28, opt(uv(2**64 - 1))),
    (90, many(numbers((0, 1, 300)))), (91, many(numbers((300, 2**32 - 1)))),
    (92, uv(300)), (93, uv(300) + u8(1)), (93, uv(300) + u8(2)), (94, uv(300)),
    (41, opt(None) + many([]) + scaled(SEC) + u8(1) + uv(3) + u8(4) + opt(uv(2**64 - 1)) + scaled(1) + scaled(0)
     + scaled(2**120 - 1) + scaled(10**24)),
    (71, opt(None) + many([]) + uv(4) + u8(1) + opt(None) * 2 + u8(0) * 2 + many([]) + opt(None) * 3 + u8(0) * 2 + opt(None) * 4
     + uv(3) + u8(4) + opt(None) + scaled(5 * 10**9) * 4),
    (100, uv(2) + opt(None) + scaled(1500 * 10**9) + b"EUR" + u8(1)),
    (100, uv(300) + opt(uv(2**64 - 1)) + scaled(1) + b"CHF" + u8(2)),
    (101, uv(2) + opt(None)), (101, uv(300) + opt(uv(300))),
    (8, u8(1) + uv(2**64 - 1) + uv(0)), (8, u8(2) + uv(1) + uv(300)),
    (777, b"of a kind that nobody knows yet"),
]


def added(kind: int, more: bytes) -> tuple[int, bytes]:
    """The first sample of a kind, with fields that were added to it later."""
    return kind, next(body for known, body in SAMPLES if known == kind) + more


SAMPLES += [
    (110, uv(310) + u8(3) + uv(4) + many([uv(300) + many([uv(0) + uv(14) + uv(3)])]) + uv(0) + leases(7, 42) + leases(300, 302)),
    (111, uv(300) + uv(4) + leases(1, 2, 300)),
    (112, uv(1) + scaled(600 * SEC) + uv(3)),
    (113, scaled(3600 * SEC)),
    (114, uv(300) + uv(1) + u8(3)),
    (116, uv(5)),
    (118, uv(300) + u8(0)),
    (119, uv(300)),
    (120, uv(300) + next(body for known, body in SAMPLES if known == 70)),
    (121, uv(300) + u64(T0)),
    (123, uv(0) + leases(3) + u64(T0) + u64(T0 + 1) + opt(None)),
    (123, uv(2) + leases(3, 7) + u64(T0) + u64(T0 + SEC) + opt(text("firmware"))),
    (124, uv(2) + leases(3, 7)),
    (125, uv(2) + leases(3, 7) + u8(1) + u8(0)),
    (115, uv(300) + leases(11, 300) + opt(uv(300)) + u8(2) + uv(9)),
    (117, uv(300) + uv(7) + uv(290)),
    (122, uv(300) + uv(7)),
    (126, uv(2) + u64(T0) + u64(T0 + SEC) + opt(text("firmware")) + leases(11, 300) + opt(uv(300)) + u8(2) + uv(9)),
    (130, uv(300) + u64(T0)),
    (41, opt(None) + many([]) + scaled(SEC) + u8(1) + uv(4) + u8(5) + uv(5) + (37).to_bytes(16, "big") + uv(21)
     + (2).to_bytes(16, "big") + uv(7) + uv(2)),
    added(13, uv(3) + text("ops@example.org") + u8(2)),
    added(19, uv(31) + u8(1) + u8(1) + uv(3) + u8(0) + u8(3) + uv(2) + uv(9) + scaled(SEC) + u64(T0)),
    added(19, uv(16) + u8(1) + uv(9) + u64(T0)),
    *(added(kind, uv(1) + opt(uv(300)) + u8(1) + bytes(range(16))) for kind in (44, 45, 46)),
    *(added(kind, uv(1) + opt(None) + u8(2) + uv(70_000)) for kind in (47, 48, 49)),
    *(added(kind, uv(1) + text("new power supplies")) for kind in (32, 33)),
    added(49, uv(3) + opt(None) + u8(2) + uv(70_000) + text("checked")),
    added(70, uv(1) + u8(1)), added(70, uv(3) + u8(1) + uv(300)), added(71, uv(1) + u8(2)),
    *(added(kind, uv(1) + uv(70_000)) for kind in (91, 92, 93)),
]
SAMPLES += [
    added(118, uv(1) + text("wait for data")),
    added(90, uv(1) + u64(T0)),
    added(19, uv(32)),
    added(52, uv(1) + uv(5)),
    added(126, uv(1) + u8(1)),
]


# ---------------------------------------------------------------- records

@dataclass
class Rec:
    kind: int
    body: bytes
    stamp: int
    parts: dict[int, bytes] = field(default_factory=dict)  # bits 0 to 9 and 11, each encoded
    signers: list[Key] = field(default_factory=list)
    raw_head: Optional[bytes] = None  # replaces everything between the link and the body
    signatures: Optional[list[bytes]] = None  # replaces the true ones

    def hashed(self, previous: bytes, sequence: int) -> bytes:
        parts = dict(self.parts)
        if self.signers:
            parts[10] = many([k.public for k in self.signers])
        head = self.raw_head if self.raw_head is not None else (
            uv(sequence) + u64(self.stamp) + uv(self.kind) + uv(sum(1 << b for b in parts))
            + b"".join(parts[b] for b in sorted(parts)))
        return previous + head + self.body

    def frame(self, hashed: bytes) -> bytes:
        digest = hashlib.sha256(hashed).digest()
        signatures = self.signatures if self.signatures is not None else [
            k.sign(b"leasehold record signature v1\n" + digest) for k in self.signers]
        return struct.pack("<I", len(hashed) * 4 + len(signatures)) + hashed + b"".join(signatures)


ALL_PARTS = [
    {0: scaled(1_500_000)},
    {1: uv(1), 2: uv(2), 3: uv(3), 4: uv(400)},
    {5: u8(1) + uv(3)}, {5: u8(2) + uv(3)}, {5: u8(3)}, {5: u8(4)}, {5: u8(5)}, {5: u8(6)}, {5: u8(7)},
    {11: b""},
    {6: opt(uv(300)) + uv(3) + b"abc" + bytes(16), 7: text("job 1"), 8: text("entry"), 9: text("claim")},
    {0: scaled(1), 1: uv(1), 2: uv(2), 3: uv(3), 4: uv(4), 5: u8(1) + uv(0), 6: opt(None) + uv(64) + bytes(64) + bytes(16),
     7: text("w"), 8: text("h"), 9: text("d" * 128), 11: b""},
]


def genesis(key: Key, origin: str = ORIGIN, version: int = 1) -> Rec:
    return Rec(1, uv(version) + text(origin) + key.public + text("fixture 1"), T0)


def rotation(old: Key, new: Key, stamp: int) -> Rec:
    return Rec(4, old.public + new.public, stamp, signers=[old, new])


def batch(frames: Sequence[bytes], version: int = 1, mac: bytes = bytes(32)) -> bytes:
    payload = (mac if version == 2 else b"") + b"".join(frames)
    sizes = struct.pack("<II", len(payload), len(frames))
    return b"LHB%d" % version + sizes + struct.pack("<I", zlib.crc32(sizes + payload)) + payload


def header(number: int, first: int, previous: bytes, origin: str = ORIGIN, version: int = 1) -> bytes:
    h = b"LHSEGMNT" + struct.pack("<IIQ", version, number, first) + previous + hashlib.sha256(origin.encode()).digest() + bytes(4)
    return h + struct.pack("<I", zlib.crc32(h))


# ---------------------------------------------------------------- tree, notes, files

def tree_root(hashes: Sequence[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    n = len(hashes)
    if n == 0:
        return hashlib.sha256(b"").digest()
    if n == 1:
        return hashlib.sha256(b"\0" + hashes[0]).digest()
    k = 1 << (n - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + tree_root(hashes[:k]) + tree_root(hashes[k:])).digest()


def tree_parts(hashes: Sequence[bytes]) -> list[bytes]:
    parts, at = [], 0
    for bit in reversed(range(64)):
        if len(hashes) >> bit & 1:
            parts.append(tree_root(hashes[at:at + (1 << bit)]))
            at += 1 << bit
    return parts


def note(size: int, root: bytes, key: Optional[Key], origin: str = ORIGIN,
         witnesses: Iterable[tuple[str, Key]] = (), time: int = 1_700_000_000) -> bytes:
    body = f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n".encode()
    out = body + b"\n"
    if key is not None:
        out += f"— {origin} {base64.b64encode(key.key_id(origin) + key.sign(body)).decode()}\n".encode()
    for name, w in witnesses:
        signature = w.sign(f"cosignature/v1\ntime {time}\n".encode() + body)
        blob = w.key_id(name, 4) + struct.pack(">Q", time) + signature
        out += f"— {name} {base64.b64encode(blob).decode()}\n".encode()
    return out


def seal(content: bytes) -> bytes:
    return content + b"end " + hashlib.sha256(content).hexdigest().encode() + b"\n"


def anchor_slot(counter: int, size: int, head: bytes, root: bytes, key: Key, signed: bytes, origin: str = ORIGIN,
                version: int = 1) -> bytes:
    state, mac = ("state open\n", b"mac " + b"5a" * 32 + b"\n") if version == 2 else ("", b"")
    lines = (f"leasehold-anchor v{version}\ncounter {counter}\norigin {origin}\nepoch 1\n{state}size {size}\n"
             f"head {head.hex()}\nroot {root.hex()}\nkey {key.key_id(origin).hex()}\ntime {T0}\ncheckpoint\n").encode()
    return seal(lines + signed + mac).ljust(4096, b"\0")


def trust_file(keys: Sequence[Key], origin: str = ORIGIN, witnesses: Iterable[tuple[str, Key]] = (), require: int = 0,
               pinned: Optional[bytes] = None) -> bytes:
    lines = ["leasehold-trust v1", "# made by fixtures.py", f"origin {origin}"]
    lines += [f"key {k.vkey(origin)}" for k in keys] + [f"witness {w.vkey(n, 4)}" for n, w in witnesses]
    lines += [f"require {require}"] if require else []
    return ("\n".join(lines) + "\n").encode() + (b"" if pinned is None else b"checkpoint\n" + pinned)


def put(path: Path, data: bytes) -> None:
    """Writes a file anew: where one is cut and written over, some file systems wait for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


class Journal:
    """Segments of batches of records, and who signs what."""

    def __init__(self, segments: Sequence[Sequence[Sequence[Rec]]], keys: Sequence[Key],
                 rotated_at: Sequence[int] = (), origin: str = ORIGIN, versions: Sequence[int] = ()) -> None:
        """`versions`: of each segment; the anchor is of the last one's."""
        self.origin, self.keys, self.rotated_at = origin, list(keys), list(rotated_at)
        self.segments: list[bytes] = []
        self.first: list[int] = []  # first sequence of each segment
        self.hashes: list[bytes] = []
        self.spans: list[tuple[int, int, int]] = []  # (segment number, offset, length) of each record's frame
        self.batch_at: list[list[int]] = []  # offsets of the batches of each segment
        previous = bytes(32)
        self.versions = list(versions) or [1] * len(segments)
        for number, (batches, version) in enumerate(zip(segments, self.versions), 1):
            data = header(number, len(self.hashes), previous, origin, version)
            self.first.append(len(self.hashes))
            self.batch_at.append([])
            for records in batches:
                self.batch_at[-1].append(len(data))
                at, frames = len(data) + (48 if version == 2 else 16), []
                for record in records:
                    hashed = record.hashed(previous, len(self.hashes))
                    previous = hashlib.sha256(hashed).digest()
                    self.hashes.append(previous)
                    frames.append(record.frame(hashed))
                    self.spans.append((number, at, len(frames[-1])))
                    at += len(frames[-1])
                data += batch(frames, version)
            self.segments.append(data)

    @property
    def size(self) -> int:
        return len(self.hashes)

    def key_at(self, size: int) -> Key:
        return self.keys[sum(1 for s in self.rotated_at if s < size)]

    def root(self, size: int) -> bytes:
        return tree_root(self.hashes[:size])

    def checkpoint(self, size: int, key: Optional[Key] = None, **kw) -> bytes:
        return note(size, self.root(size), key or self.key_at(size), self.origin, **kw)

    def slot(self, counter: int, size: int, key: Optional[Key] = None, **kw) -> bytes:
        k = key or self.key_at(size)
        head = self.hashes[size - 1] if size else bytes(32)
        return anchor_slot(counter, size, head, self.root(size), k, self.checkpoint(size, k, **kw), self.origin,
                           self.versions[-1])

    def tree_file(self, number: int, key: Optional[Key] = None) -> bytes:
        size = self.first[number - 1]
        lines = [f"size {size}", f"head {self.hashes[size - 1].hex()}"]
        lines += [f"part {p.hex()}" for p in tree_parts(self.hashes[:size])]
        return seal(("leasehold-tree v1\n" + "\n".join(lines) + "\ncheckpoint\n").encode() + self.checkpoint(size, key))

    def write(self, folder: Path, *, anchor: Optional[int] = None, before: Optional[int] = None, padding: int = 64,
              torn: bytes = b"", trees: bool = True, archive: Optional[Path] = None, archived: int = 0,
              unbegun: bool = False, witnesses: Iterable[tuple[str, Key]] = ()) -> Path:
        """`anchor`/`before`: sizes of the newer and older slot; `torn`: bytes after the last batch;
        `archived`: that many early segments go to `archive` (or are left out if it is None)."""
        (folder / "journal").mkdir(parents=True, exist_ok=True)
        for stale in (folder / "journal").iterdir():
            stale.unlink()
        if archive:
            archive.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(self.segments, 1):
            place = archive if number <= archived else folder / "journal"
            if place is None:
                continue
            tail = torn if number == len(self.segments) else b""
            put(place / f"{number:08}.seg", data + tail + bytes(padding))
            if trees and number > 1:
                put(place / f"{number:08}.tree", self.tree_file(number))
        if unbegun:
            put(folder / "journal" / f"{len(self.segments) + 1:08}.seg", bytes(512))
        anchor = self.size if anchor is None else anchor
        old = bytes(4096) if before is None else self.slot(41, before)
        put(folder / "anchor", old + self.slot(42, anchor, witnesses=list(witnesses)))
        return folder


K1, K2, K3, STRANGER, WITNESS = (Key(s) for s in ("k1", "k2", "k3", "stranger", "witness"))
WITNESSES = [("w.example.net", WITNESS)]


def sample_records(version: int = 1) -> list[Rec]:
    """A genesis, every kind, every optional part, two rotations (K1 to K2 to K3) and signed ordinary records."""
    out = [genesis(K1, version=version)]
    for kind, body in SAMPLES:
        out.append(Rec(kind, body, T0 + len(out) * 1000))
    out.insert(10, rotation(K1, K2, T0 + 9_500))
    for parts in ALL_PARTS:
        out.append(Rec(3, b"", T0 + SEC + len(out) * 1000, dict(parts)))
    out.append(rotation(K2, K3, T0 + 2 * SEC))
    out.append(Rec(3, b"", T0 + 2 * SEC, signers=[K3]))
    out.append(Rec(778, b"", T0 + 2 * SEC, {0: scaled(7), 1: uv(1)}, signers=[K3, STRANGER]))
    return out


def arrange(records: Sequence[Rec], per_batch: int = 3, per_segment: int = 4) -> list[list[list[Rec]]]:
    batches = [list(records[i:i + per_batch]) for i in range(0, len(records), per_batch)]
    return [batches[i:i + per_segment] for i in range(0, len(batches), per_segment)]


def sample_journal(version: int = 1) -> Journal:
    records = sample_records(version)
    segments = arrange(records)
    rotated_at = [i for i, r in enumerate(records) if r.kind == 4]
    return Journal(segments, [K1, K2, K3], rotated_at, versions=[version] * len(segments))


def converted(at: int = 0) -> Rec:
    return Rec(7, uv(2), T0 + at)


def converted_journal() -> Journal:
    """Two segments of version 1 and two of version 2, the first of which begins with the conversion record."""
    records = small_records(8)
    old, new = arrange(records[:4], 2, 1), arrange([converted(30)] + records[4:], 2, 2)
    return Journal(old + new, [K1], versions=[1] * len(old) + [2] * len(new))


def small_records(n: int = 8) -> list[Rec]:
    return [genesis(K1)] + [Rec(48, leases(i, i + 3), T0 + i * 10, {1: uv(7)}) for i in range(1, n)]


def small_journal(n: int = 8, per_batch: int = 2, per_segment: int = 2) -> Journal:
    return Journal(arrange(small_records(n), per_batch, per_segment), [K1])


def main() -> None:
    base = Path(sys.argv[1])
    j = sample_journal(version=2)
    j.write(base / "data", anchor=j.size - 2, before=j.size - 3, torn=b"LHB2 torn", archive=base / "archive", archived=2,
            unbegun=True, witnesses=WITNESSES)
    converted = converted_journal()
    converted.write(base / "converted", anchor=converted.size - 2)
    put(base / "converted-trust", trust_file([K1]))
    put(base / "trust", trust_file([K1], witnesses=WITNESSES, pinned=j.checkpoint(20)))


if __name__ == "__main__":
    main()
