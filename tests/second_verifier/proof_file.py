"""The proof file of an invoice, version 1: its form, its checkpoint, its records and the multiproof.

Written from docs/reference/invoice-proof.md ("The file", "The multiproof").
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Optional

import verify as v
from ledger import Wrong
from records import Sealed, decode
from verify import Malformed, Reader, sha256

FIRST_LINE = b"leasehold-invoice-proof v1\n"
MAX_CHECKPOINT, MAX_RECORD, MAX_GROWTH = 1_048_576, 262_112, 63
ROTATED = 4


@dataclass
class Framed:
    """A record of the file, with what surrounds it."""
    sequence: int
    raw: bytes
    link: Optional[bytes]  # where the file has one
    signatures: list[bytes]
    record: Optional[Sealed] = None  # once it is decoded


@dataclass
class Growth:
    """What leads from an earlier size of the journal to the checkpoint."""
    size: int
    root: bytes
    hashes: list[bytes]


@dataclass
class ProofFile:
    number: tuple[int, int]  # series and number
    checkpoint: bytes
    growth: Optional[Growth]
    framed: list[Framed]
    common: bytes
    tenant: bytes
    nodes: bytes
    hashes: list[bytes]

    @property
    def records(self) -> list[Sealed]:
        """Those that concern the invoice: all but the key rotations."""
        return [f.record for f in self.framed if not is_rotation(f.record)]


def is_rotation(r: Sealed) -> bool:
    return r.kind == ROTATED and r.tenant is None


def malformed(where: str, why: object) -> Wrong:
    return Wrong("bad_file", ("file", where), f"the file is not a proof of version 1: {where}: {why}")


def parse(data: bytes) -> ProofFile:
    """The parts of a file. Its records are not decoded yet."""
    if not data.startswith(FIRST_LINE):
        newer = re.match(rb"leasehold-invoice-proof v([1-9][0-9]{0,8})\n", data)
        code = "newer_format" if newer and newer[1] != b"1" else "not_a_proof"
        raise Wrong(code, ("file", "first line"), f"the file begins with {data[:27]!r}")
    r = Reader(data)
    r.pos = len(FIRST_LINE)
    where = "invoice"
    try:
        number = (v.enum("series", 2)(r)[0], r.varint())
        where = "checkpoint"
        checkpoint = r.take(r.count(0, MAX_CHECKPOINT, "bytes of checkpoint"))
        where = "earlier size"
        growth = read_growth(r)
        framed: list[Framed] = []
        last: Optional[Framed] = None
        while True:
            where = f"record after {last.sequence}" if last else "first record"
            word = r.varint()
            if word == 0:
                break
            last = read_record(r, word, last)
            framed.append(last)
        lists = []
        for where in ("common list", "tenant's list", "claimed nodes"):
            lists.append(r.take(r.varint()))
    except Malformed as e:
        raise malformed(where, e) from None
    rest = data[r.pos:]
    if len(rest) % 32:
        raise malformed("hashes", f"{len(rest)} bytes, which is not a multiple of 32")
    return ProofFile(number, checkpoint, growth, framed, *lists, [rest[i:i + 32] for i in range(0, len(rest), 32)])


def read_growth(r: Reader) -> Optional[Growth]:
    size = r.varint()
    if size == 0:
        return None
    root = r.take(32)
    return Growth(size, root, [r.take(32) for _ in range(r.count(0, MAX_GROWTH, "hashes"))])


def read_record(r: Reader, word: int, last: Optional[Framed]) -> Framed:
    length, signatures = word >> 2, word & 3
    if not 1 <= length <= MAX_RECORD or signatures > 2:
        raise Malformed(f"{length} bytes with {signatures} signatures")
    raw = r.take(length)
    sequence = Reader(raw).varint()
    link = None
    if last is None or sequence != last.sequence + 1:
        link = r.take(32)
    if last is not None and sequence <= last.sequence:
        raise Malformed(f"record {sequence} after record {last.sequence}")
    return Framed(sequence, raw, link, [r.take(64) for _ in range(signatures)])


def decode_records(framed: list[Framed]) -> None:
    """Decodes the records, and checks their signatures."""
    before = v.ZERO32
    for f in framed:
        try:
            f.record = decode((before if f.link is None else f.link) + f.raw)
        except Malformed as e:
            raise malformed(f"record {f.sequence}", e) from None
        before = f.record.hash
        signers = f.record.parts.get(10, [])
        if len(signers) != len(f.signatures):
            raise malformed(f"record {f.sequence}", f"{len(f.signatures)} signatures of {len(signers)} signers")
        for signer, signature in zip(signers, f.signatures):
            if not v.signature_fits(signer, signature, v.RECORD_SIGNATURE_PREFIX + f.record.hash):
                raise malformed(f"record {f.sequence}", f"the signature of {signer.hex()} is false")


def rotated_keys(framed: list[Framed], keys: list[bytes]) -> list[bytes]:
    """The keys to which those of the trust file were rotated, the newest last. The signatures of records fit already."""
    known = list(dict.fromkeys(keys))
    count = len(known)
    for r in (f.record for f in framed if is_rotation(f.record)):
        if r.parts.get(10) != list(r.body):
            raise malformed(f"record {r.sequence}", "a key rotation that does not name both keys as signers")
        old, new = r.body
        if old in known and new not in known:
            known.append(new)
    return known[count:]


def read_checkpoint(file: ProofFile, trust: v.Trust) -> v.Checkpoint:
    try:
        c = v.Checkpoint.parse(file.checkpoint)
    except Malformed as e:
        raise Wrong("bad_checkpoint", ("file", "checkpoint"), f"checkpoint: {e}") from None
    if c.origin != trust.origin:
        raise Wrong("wrong_origin", ("file", "checkpoint"), f"the checkpoint is of {c.origin!r}, and the trust file of "
                    f"{trust.origin!r}", trust.origin, c.origin)
    return c


def is_signed(c: v.Checkpoint, origin: str, keys: list[bytes]) -> bool:
    try:
        return any([c.signed_by(origin, k) for k in keys])
    except Malformed as e:
        raise Wrong("bad_checkpoint", ("file", "checkpoint"), f"checkpoint: {e}") from None


def check_cosigned(c: v.Checkpoint, trust: v.Trust) -> None:
    try:
        cosigned = {key for name, key in trust.witnesses if c.cosigned_by(name, key)}
    except Malformed as e:
        raise Wrong("cosignatures", ("file", "checkpoint"), f"checkpoint: {e}") from None
    if len(cosigned) < trust.required:
        raise Wrong("cosignatures", ("file", "checkpoint"), f"{len(cosigned)} witnesses have cosigned the checkpoint, and "
                    f"the trust file requires {trust.required}", trust.required, len(cosigned))


def check_pinned(file: ProofFile, c: v.Checkpoint, keys: list[bytes], trust: v.Trust) -> bool:
    """Whether the journal is known to be or to continue the pinned one."""
    growth, pinned = file.growth, trust.pinned
    if growth is not None and not consistent(growth.size, growth.root, c.size, c.root, growth.hashes):
        raise malformed("earlier size", f"the hashes do not lead from {growth.size} records to {c.size}")
    if pinned is None:
        return False
    try:
        signed = any([pinned.signed_by(trust.origin, k) for k in keys])
    except Malformed:
        signed = False
    if pinned.origin != trust.origin or not signed:
        raise Wrong("bad_pinned_checkpoint", ("file", "trust"), "the pinned checkpoint is not signed by a key of the trust file")
    roots = {c.size: c.root} | ({} if growth is None else {growth.size: growth.root})
    if roots.get(pinned.size, pinned.root) != pinned.root:
        raise Wrong("fork", ("file", "checkpoint"), f"at {pinned.size} records the journal has another root than the "
                    "pinned checkpoint", pinned.root.hex(), roots[pinned.size].hex())
    return pinned.size in roots or pinned.size == 0


def consistent(old: int, old_root: bytes, new: int, new_root: bytes, hashes: list[bytes]) -> bool:
    """Whether hashes show that one tree is the beginning of another (RFC 9162, section 2.1.4.2)."""
    if old > new or old == new:
        return old == new and old_root == new_root and not hashes
    path = hashes if old & (old - 1) else [old_root, *hashes]
    if not path:
        return False
    inner, last = old - 1, new - 1
    while inner & 1:
        inner, last = inner >> 1, last >> 1
    first = second = path[0]
    for h in path[1:]:
        if last == 0:
            return False
        if inner & 1 or inner == last:
            first, second = sha256(b"\1", h, first), sha256(b"\1", h, second)
            while not inner & 1 and inner:
                inner, last = inner >> 1, last >> 1
        else:
            second = sha256(b"\1", second, h)
        inner, last = inner >> 1, last >> 1
    return first == old_root and second == new_root and last == 0


def known_leaves(framed: list[Framed]) -> dict[int, bytes]:
    leaves = {}
    for f in framed:
        if f.record.sequence % 2 and f.link is not None:
            leaves[f.record.sequence - 1] = sha256(b"\0", f.link)
        leaves[f.record.sequence] = sha256(b"\0", f.record.hash)
    return leaves


def multiproof_root(leaves: dict[int, bytes], size: int, hashes: list[bytes]) -> bytes:
    """The root of a tree of that size; all hashes are used. Malformed if leaves and hashes do not make one."""
    indexes = sorted(leaves)
    if not indexes or indexes[-1] >= size:
        raise Malformed(f"a tree of {size} leaves has none of index {indexes[-1] if indexes else 'any'}")
    supply = iter(hashes)

    def root(start: int, end: int, first: int, last: int) -> bytes:
        """`first` and `last` bound the known leaves of the range, as positions in `indexes`."""
        if first == last:
            try:
                return next(supply)
            except StopIteration:
                raise Malformed("too few hashes") from None
        if end - start == 1:
            return leaves[start]
        k = 1 << (end - start - 1).bit_length() - 1
        middle = bisect_left(indexes, start + k, first, last)
        return sha256(b"\1", root(start, start + k, first, middle), root(start + k, end, middle, last))

    result = root(0, size, 0, len(indexes))
    if next(supply, None) is not None:
        raise Malformed("hashes are left over")
    return result


def proved_root(file: ProofFile, c: v.Checkpoint) -> bytes:
    try:
        return multiproof_root(known_leaves(file.framed), c.size, file.hashes)
    except Malformed as e:
        raise malformed("hashes", f"they do not fit the records: {e}") from None


def check_root(root: bytes, c: v.Checkpoint) -> None:
    if root != c.root:
        raise Wrong("root_mismatch", ("file", "hashes"), "records and hashes do not lead to the root of the checkpoint",
                    c.root.hex(), root.hex())
