"""Attacks on small journals, each of which the second verifier must answer rightly.

    python3 -m unittest discover -s tests/second_verifier
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import struct
import sys
import tempfile
import unittest
import zlib
from pathlib import Path
from typing import Callable, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))

import fixtures as fx  # noqa: E402
import verify as vf  # noqa: E402
from fixtures import K1, K2, K3, ORIGIN, STRANGER, T0, WITNESSES, Journal, Rec, leases, scaled, text, u8, u64, uv  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.base = Path(holder.name)
        self.data = self.base / "data"
        self.archive = self.base / "archive"

    def seg(self, number: int) -> Path:
        return self.data / "journal" / f"{number:08}.seg"

    def trees_away(self) -> None:
        for path in (self.data / "journal").glob("*.tree"):
            path.unlink()

    def run_it(self, trust: Optional[bytes] = None, archive: bool = False) -> dict:
        path = self.base / "trust"
        fx.put(path, fx.trust_file([K1]) if trust is None else trust)
        return vf.verify(self.data, vf.read_trust(path), [self.archive] if archive else [])

    def ok(self, trust: Optional[bytes] = None, **kw) -> dict:
        result = self.run_it(trust, **kw)
        self.assertTrue(result["ok"], result["first_bad"])
        return result

    def bad(self, why: str, trust: Optional[bytes] = None, *, sequence: Optional[int] = None,
            segment: Optional[int] = None, **kw) -> dict:
        result = self.run_it(trust, **kw)
        self.assertFalse(result["ok"], "accepted")
        found = result["first_bad"]
        self.assertRegex(found["why"], why)
        if sequence is not None:
            self.assertEqual(found["sequence"], sequence, found)
        if segment is not None:
            self.assertEqual(found["segment"], segment, found)
        return result


class Vectors(unittest.TestCase):
    def test_c2sp_note_and_key_id(self) -> None:
        """The published example key of signed notes: its key id is the hash of name, type and key."""
        name, key = vf.parse_vkey("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", 1)
        signature = base64.b64decode("Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=")
        self.assertEqual(vf.key_id(name, 1, key), signature[:4])
        self.assertTrue(vf.signature_fits(key, signature[4:], b"This is an example message.\n"))

    def test_tree_frontier_equals_the_rfc_definition(self) -> None:
        frontier, hashes = vf.Frontier(), []
        for i in range(70):
            self.assertEqual(frontier.root(), fx.tree_root(hashes))
            self.assertEqual(frontier.parts, fx.tree_parts(hashes))
            hashes.append(hashlib.sha256(bytes([i])).digest())
            frontier.append(hashes[-1])

    def test_tree_known_root(self) -> None:
        """RFC 6962 test vector of the empty leaf, and of the empty tree."""
        f = vf.Frontier()
        self.assertEqual(f.root().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        f.append(b"")
        self.assertEqual(f.root().hex(), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d")


class Sound(Case):
    def test_everything(self) -> None:
        j = fx.sample_journal()
        j.write(self.data, unbegun=True)
        r = self.ok()
        self.assertEqual((r["records"], r["complete_to"], r["proved_by"]), (j.size, j.size, "anchor"))
        self.assertEqual((r["rotations"], r["unknown_kinds"], r["torn"]), (2, 2, None))

    def test_anchor_lags_at_every_size(self) -> None:
        j = fx.sample_journal()
        for size in range(1, j.size + 1):
            j.write(self.data, anchor=size)
            r = self.ok()
            self.assertEqual((r["records"], r["complete_to"]), (j.size, size))

    def test_pinned_at_every_size(self) -> None:
        j = fx.sample_journal()
        j.write(self.data)
        for size in range(1, j.size + 1):
            r = self.ok(fx.trust_file([K1], pinned=j.checkpoint(size)))
            self.assertEqual((r["complete_to"], r["proved_by"]), (size, "pinned_checkpoint"))
            self.assertEqual(r["proofs"]["anchor"], j.size)

    def test_witness(self) -> None:
        j = fx.small_journal()
        j.write(self.data, anchor=6, witnesses=WITNESSES)
        self.assertEqual(self.ok()["proved_by"], "anchor", "an unknown witness proves nothing")
        r = self.ok(fx.trust_file([K1], witnesses=WITNESSES, pinned=j.checkpoint(3)))
        self.assertEqual((r["complete_to"], r["proved_by"]), (6, "witness"))
        r = self.ok(fx.trust_file([K1], witnesses=WITNESSES, pinned=j.checkpoint(7)))
        self.assertEqual((r["complete_to"], r["proved_by"]), (7, "pinned_checkpoint"))

    def test_without_tree_files_and_padding(self) -> None:
        fx.small_journal().write(self.data, trees=False, padding=0)
        self.ok()

    def test_archive(self) -> None:
        j = fx.sample_journal()
        j.write(self.data, archive=self.archive, archived=2)
        self.assertEqual(self.ok(archive=True)["first_sequence"], 0)

    def test_archive_laid_out_like_a_data_folder(self) -> None:
        fx.sample_journal().write(self.data, archive=self.archive / "journal", archived=2)
        self.assertEqual(self.ok(archive=True)["first_sequence"], 0)

    def test_suffix_alone(self) -> None:
        j = fx.sample_journal()
        for archived in range(1, len(j.segments)):
            with tempfile.TemporaryDirectory() as d:
                self.data = Path(d)
                j.write(self.data, archived=archived)
                first = j.first[archived]
                trust = fx.trust_file([j.key_at(first)], pinned=j.checkpoint(j.size - 1))
                r = self.ok(trust)
                self.assertEqual((r["first_sequence"], r["records"], r["complete_to"]), (first, j.size, j.size - 1))

    def test_one_record(self) -> None:
        Journal([[[fx.genesis(K1)]]], [K1]).write(self.data)
        self.assertEqual(self.ok()["records"], 1)

    def test_last_segment_begun_but_empty(self) -> None:
        j = Journal(fx.arrange(fx.small_records(), 2, 2) + [[]], [K1])
        j.write(self.data)
        self.ok()
        j.write(self.data, unbegun=True)
        self.ok()

    def test_signed_utf8_origin(self) -> None:
        j = Journal([[[fx.genesis(K1, "Köln.example")]]], [K1], origin="Köln.example")
        j.write(self.data)
        self.ok(fx.trust_file([K1], "Köln.example"))


class Torn(Case):
    """What the page counts as a torn end: reported, not counted."""

    def test_torn_batch(self) -> None:
        j = fx.small_journal(9)
        extra = fx.batch([b"\xff" * 90])
        for cut in range(1, len(extra)):
            j.write(self.data, torn=extra[:cut])
            self.assertEqual(self.ok()["torn"]["segment"], 3)
        for torn in (b"garbage", bytes(40) + b"x", extra[:-1] + b"\0", bytes(16) + extra[16:]):
            j.write(self.data, torn=torn)
            self.assertEqual(self.ok()["records"], j.size)

    def test_torn_batch_before_a_good_one_is_damage(self) -> None:
        j = fx.small_journal(9)
        for sequence in (9, 10, 4711):
            good = self.batch_of(sequence)
            for before in (b"garbage", bytes(8), good[:-1] + b"\1"):
                j.write(self.data, torn=before + good)
                self.bad("a good batch follows", sequence=9, segment=3)

    def test_what_looks_like_a_batch_inside_a_torn_one(self) -> None:
        """Somebody's idempotency key, say: of records long sealed, or of none."""
        j = fx.small_journal(9)
        for inside in (self.batch_of(8), self.batch_of(0), fx.batch([b"\xff" * 90]), fx.batch([bytes(31)])):
            j.write(self.data, torn=b"garbage" + inside)
            self.assertEqual((self.ok()["records"], self.ok()["torn"]["segment"]), (9, 3))

    def test_made_not_torn(self) -> None:
        """The checksum fits, so somebody made these bytes; after the anchor or not."""
        j = fx.small_journal(9)
        for frames, why in (([bytes(31)], "frame of"), ([fx.Rec(3, b"\0", T0 + 999).frame(b"\xff" * 90)], "."),
                            ([fx.Rec(3, b"", T0 + 999).frame(bytes(40))], "."), ([self.frame_of(9), b""], ".")):
            j.write(self.data, anchor=5, torn=fx.batch(frames))
            self.bad(why, sequence=None, segment=3)

    def test_torn_batch_that_the_pinned_checkpoint_knows_is_damage(self) -> None:
        whole, j = fx.small_journal(12), fx.small_journal(9)
        j.write(self.data, torn=b"garbage")
        self.ok(fx.trust_file([K1], pinned=whole.checkpoint(9)))
        self.bad("the pinned checkpoint knows 10", fx.trust_file([K1], pinned=whole.checkpoint(10)), sequence=9, segment=3)

    @staticmethod
    def frame_of(sequence: int) -> bytes:
        record = Rec(3, b"", T0 + 5000)
        return record.frame(record.hashed(bytes(32), sequence))

    def batch_of(self, sequence: int) -> bytes:
        return fx.batch([self.frame_of(sequence)])

    def test_torn_batch_that_the_anchor_knows_is_damage(self) -> None:
        j = fx.small_journal()
        for anchor, good in ((8, False), (7, False), (6, True)):
            j.write(self.data, anchor=anchor)
            data = bytearray(self.seg(2).read_bytes())
            data[j.spans[7][1] + 20] ^= 1
            fx.put(self.seg(2), data)
            if good:
                self.assertEqual(self.ok()["records"], 6)
            else:
                self.bad("the anchor knows", sequence=6, segment=2)

    def test_torn_end_of_an_earlier_segment_is_damage(self) -> None:
        fx.small_journal().write(self.data)
        with self.seg(1).open("r+b") as f:
            f.seek(-10, 2)
            f.write(b"x")
        self.bad("other segments follow", sequence=4, segment=1)

    def test_torn_header(self) -> None:
        j = fx.small_journal()
        whole = fx.header(3, 8, j.hashes[-1])
        j.write(self.data)
        for torn in (whole[:50], whole[:95], b"x", whole[:60] + bytes(100), whole[:60] + bytes(100) + b"y"):
            fx.put(self.seg(3), torn)
            self.assertEqual(self.ok()["torn"]["segment"], 3)
        fx.put(self.seg(3), whole[:60] + bytes(36) + fx.batch([b"\xff" * 90]))
        self.ok()
        fx.put(self.seg(3), whole[:60] + bytes(36) + self.batch_of(8))
        self.bad("bad segment header", segment=3)

    def test_torn_header_after_torn_batch_is_damage(self) -> None:
        fx.small_journal().write(self.data, torn=b"garbage")
        fx.put(self.seg(3), b"LHSEG")
        self.bad("other segments follow", segment=2)

    def test_segment_not_begun_in_the_middle(self) -> None:
        fx.small_journal(12).write(self.data)
        fx.put(self.seg(2), bytes(512))
        self.bad("header", segment=2)


class Altered(Case):
    def test_every_byte_of_every_file(self) -> None:
        """Flip each byte. Only padding after the last batch may pass, and then as a torn end."""
        j = fx.small_journal()
        j.write(self.data, padding=24)
        files = sorted((self.data / "journal").iterdir()) + [self.data / "anchor"]
        self.assertEqual(len(files), 4)
        for path in files:
            whole = path.read_bytes()
            for at in range(len(whole)):
                if path.name == "anchor" and at < 4096 and at % 64:
                    continue  # the slot never written: a sample is enough
                for bit in (0x01, 0x80):
                    broken = bytearray(whole)
                    broken[at] ^= bit
                    fx.put(path, broken)
                    result = self.run_it()
                    padding = path.name == "00000002.seg" and at >= len(j.segments[1])
                    if padding:
                        self.assertTrue(result["ok"] and result["torn"], (path.name, at, result["first_bad"]))
                    elif path.name == "anchor" and at < 4096:
                        self.assertTrue(result["ok"])
                    else:
                        self.assertFalse(result["ok"], (path.name, at, bit))
            fx.put(path, whole)
        self.ok()

    def test_every_byte_with_the_checksum_made_to_fit(self) -> None:
        """The same, by somebody who repairs the CRC of the batch and of the header."""
        j = fx.small_journal()
        j.write(self.data, trees=False)
        for number in (1, 2):
            whole = self.seg(number).read_bytes()
            for at in range(len(j.segments[number - 1])):
                broken = bytearray(whole)
                broken[at] ^= 0x04
                broken[92:96] = struct.pack("<I", zlib.crc32(broken[:92]))
                for b in j.batch_at[number - 1]:
                    length = struct.unpack_from("<I", broken, b + 4)[0]
                    if length < 10_000:
                        broken[b + 12:b + 16] = struct.pack("<I", zlib.crc32(broken[b + 4:b + 12] + broken[b + 16:b + 16 + length]))
                if broken == whole:
                    continue  # the flip was in a checksum
                fx.put(self.seg(number), broken)
                result = self.run_it()
                self.assertFalse(result["ok"], (number, at))
            fx.put(self.seg(number), whole)

    def test_after_the_anchor_the_last_batch_may_tear_and_no_other(self) -> None:
        j = fx.small_journal()
        for at in range(96, len(j.segments[1])):
            j.write(self.data, anchor=4)
            data = bytearray(self.seg(2).read_bytes())
            data[at] ^= 0x10
            fx.put(self.seg(2), data)
            if at >= j.batch_at[1][1]:
                self.assertEqual(self.ok()["records"], 6)
            else:
                self.bad("a good batch follows", sequence=4, segment=2)

    def test_falls_back_to_the_older_anchor(self) -> None:
        j = fx.small_journal()
        j.write(self.data, before=5)
        self.assertEqual(self.ok()["complete_to"], 8)
        data = bytearray((self.data / "anchor").read_bytes())
        data[4096 + 30] ^= 1
        fx.put(self.data / "anchor", data)
        self.assertEqual(self.ok()["complete_to"], 5)
        data[30] ^= 1
        fx.put(self.data / "anchor", data)
        self.bad("no slot of the anchor fits")

    def test_anchor_missing_or_odd(self) -> None:
        j = fx.small_journal()
        j.write(self.data)
        a = self.data / "anchor"
        fx.put(a, j.slot(1, 8) + j.slot(1, 7))
        self.bad("same counter")
        fx.put(a, j.slot(1, 8) + fx.seal(j.slot(1, 8).partition(b"end ")[0].replace(b"epoch 1", b"epoch 2")).ljust(4096, b"\0"))
        self.bad("same counter")
        for good in (j.slot(1, 8) * 2, j.slot(1, 8), j.slot(1, 8).rstrip(b"\0"), bytes(4096) + j.slot(1, 8).rstrip(b"\0")):
            fx.put(a, good)
            self.ok()
        fx.put(a, j.slot(1, 7) + j.slot(2, 8).replace(b"counter 2", b"counter 3"))
        self.assertIn("slot 1 of the anchor: its `end` line does not fit", self.ok()["notes"])
        fx.put(a, j.slot(1, 8) + bytes(4096) + b"x")
        self.bad("more than two slots")
        fx.put(a, fx.seal(b"leasehold-anchor v3\n" + b"checkpoint\n" + j.checkpoint(8)).ljust(4096, b"\0") + j.slot(1, 8))
        self.bad("another format version")
        a.unlink()
        self.bad("no anchor")


class Rearranged(Case):
    """Records removed, inserted, swapped: links kept as they were, checksums made to fit."""

    def frames(self, j: Journal) -> list[bytes]:
        return [j.segments[s - 1][at:at + n] for s, at, n in j.spans]

    def rewrite(self, j: Journal, change: Callable[[list[bytes]], None]) -> None:
        j.write(self.data, trees=False)
        frames = self.frames(j)[4:]
        change(frames)
        fx.put(self.seg(2), j.segments[1][:96] + fx.batch(frames) + bytes(64))

    def test_unchanged_rebatching_is_sound(self) -> None:
        self.rewrite(fx.small_journal(), lambda f: None)
        self.ok()

    def test_removed(self) -> None:
        for i in range(3):
            self.rewrite(fx.small_journal(), lambda f: f.pop(i))
            self.bad("sequence", sequence=4 + i, segment=2)

    def test_inserted(self) -> None:
        j = fx.small_journal()
        for i in range(4):
            alien = Rec(3, b"", T0 + 30 + 10 * i)
            hashed = alien.hashed(j.hashes[3 + i], 4 + i)
            self.rewrite(j, lambda f: f.insert(i, alien.frame(hashed)))
            if i < 3:
                self.bad("sequence", sequence=5 + i, segment=2)
            else:  # in the place of the anchor's last record
                self.bad("the head at size 8", sequence=7, segment=2)

    def test_appended_after_the_anchor_hangs_on_the_chain_only(self) -> None:
        """The page says so: records after the anchor are proved by nothing."""
        j = fx.small_journal()
        alien = Rec(3, b"", T0 + 100)
        self.rewrite(j, lambda f: f.append(alien.frame(alien.hashed(j.hashes[7], 8))))
        r = self.ok()
        self.assertEqual((r["records"], r["complete_to"]), (9, 8))

    def test_swapped(self) -> None:
        for i in range(3):
            def swap(f: list[bytes]) -> None:
                f[i], f[i + 1] = f[i + 1], f[i]
            self.rewrite(fx.small_journal(), swap)
            self.bad("sequence", sequence=4 + i, segment=2)

    def test_replaced_with_a_relinked_record(self) -> None:
        j = fx.small_journal()
        other = Rec(48, leases(99), T0 + 50)
        self.rewrite(j, lambda f: f.__setitem__(1, other.frame(other.hashed(j.hashes[4], 5))))
        self.bad("altered", sequence=5, segment=2)

    def test_swapped_segments_and_missing_segment(self) -> None:
        j = fx.small_journal(12)
        j.write(self.data)
        a, b = self.seg(2).read_bytes(), self.seg(3).read_bytes()
        fx.put(self.seg(2), b), fx.put(self.seg(3), a)
        self.bad("number 3", segment=2)
        j.write(self.data)
        self.seg(2).unlink()
        self.bad("segment 2 is missing", segment=2)
        j.write(self.data)
        self.seg(1).unlink()
        self.trees_away()
        self.bad("tree is missing", segment=2)

    def test_cut_tail(self) -> None:
        j = fx.small_journal()
        for cut in (j.batch_at[1][1], j.batch_at[1][0], 96):
            j.write(self.data)
            fx.put(self.seg(2), j.segments[1][:cut])
            self.bad("cut")
        j.write(self.data)
        self.seg(2).unlink()
        (self.data / "journal" / "00000002.tree").unlink()
        self.bad("cut")
        j.write(self.data, anchor=6)
        fx.put(self.seg(2), j.segments[1][:j.batch_at[1][1]])
        self.assertEqual(self.ok()["records"], 6)

    def test_rolled_back_folder(self) -> None:
        """An older, honest copy of the folder: only evidence from outside shows it."""
        j, old = fx.small_journal(12), fx.small_journal(7)
        old.write(self.data)
        self.assertEqual(self.ok()["proved_by"], "anchor")
        self.bad("cut: the pinned", fx.trust_file([K1], pinned=j.checkpoint(9)))
        self.ok(fx.trust_file([K1], pinned=j.checkpoint(7)))


class Rewritten(Case):
    """All hashes, links, checksums and roots recomputed, by somebody without the key."""

    def rewritten(self, at: int) -> Journal:
        records = fx.small_records()
        records[at] = Rec(48, leases(4711), records[at].stamp)
        return Journal(fx.arrange(records, 2, 2), [K1])

    def test_old_anchor_kept(self) -> None:
        for at in range(1, 8):
            self.rewritten(at).write(self.data, trees=False)
            fx.put(self.data / "anchor", fx.small_journal().slot(1, 8) + bytes(4096))
            self.bad("the head at size 8", sequence=7)

    def test_old_tree_file_kept(self) -> None:
        self.rewritten(2).write(self.data)
        fx.put(self.data / "journal" / "00000002.tree", fx.small_journal().tree_file(2))
        self.bad("another journal", sequence=4, segment=2)

    def test_new_anchor_with_old_note(self) -> None:
        j = self.rewritten(3)
        j.write(self.data, trees=False)
        slot = fx.anchor_slot(1, 8, j.hashes[7], j.root(8), K1, fx.small_journal().checkpoint(8))
        fx.put(self.data / "anchor", slot + bytes(4096))
        self.bad("do not agree")
        slot = fx.anchor_slot(1, 8, j.hashes[7], fx.small_journal().root(8), K1, fx.small_journal().checkpoint(8))
        fx.put(self.data / "anchor", slot + bytes(4096))
        self.bad("the root at size 8", sequence=7)

    def test_new_note_unsigned_or_by_a_stranger(self) -> None:
        j = self.rewritten(3)
        j.write(self.data, trees=False)
        old = fx.small_journal().checkpoint(8).split(b"\n\n")[1]
        body = j.checkpoint(8).split(b"\n\n")[0] + b"\n\n"
        for note, why in ((body + old, "is wrong"), (body, "0 signatures"),
                          (j.checkpoint(8, STRANGER), "not signed by the key in force")):
            slot = fx.anchor_slot(1, 8, j.hashes[7], j.root(8), K1, note)
            fx.put(self.data / "anchor", slot + bytes(4096))
            self.bad(why)
        fx.put(self.data / "anchor", j.slot(1, 8, STRANGER) + bytes(4096))
        self.bad("another key")

    def test_own_genesis_key(self) -> None:
        records = fx.small_records()
        records[0] = fx.genesis(STRANGER)
        Journal(fx.arrange(records, 2, 2), [STRANGER]).write(self.data)
        self.bad("not a trusted one", sequence=0, segment=1)

    def test_own_rotation(self) -> None:
        records = fx.small_records()
        for rogue in (Rec(4, K1.public + STRANGER.public, T0 + 50, signers=[STRANGER, STRANGER]),
                      Rec(4, K1.public + STRANGER.public, T0 + 50, signers=[STRANGER]),
                      Rec(4, K1.public + STRANGER.public, T0 + 50)):
            records[5] = rogue
            Journal(fx.arrange(records, 2, 2), [K1, STRANGER], [5]).write(self.data)
            self.bad("not signed by its old", sequence=5, segment=2)
        records[5] = Rec(4, STRANGER.public + K2.public, T0 + 50, signers=[STRANGER, K2])
        Journal(fx.arrange(records, 2, 2), [K1, K2], [5]).write(self.data)
        self.bad("not the one in force", sequence=5, segment=2)
        records[5] = fx.rotation(K1, STRANGER, T0 + 50)
        records[5].signatures = [bytes(64), bytes(64)]
        Journal(fx.arrange(records, 2, 2), [K1, STRANGER], [5]).write(self.data)
        self.bad("signature of .* is wrong", sequence=5, segment=2)

    def test_fork(self) -> None:
        """Rewritten with the key: everything in the folder fits, but the auditor has seen another root."""
        self.rewritten(3).write(self.data)
        self.ok()
        seen = fx.small_journal()
        self.ok(fx.trust_file([K1], pinned=seen.checkpoint(3)))
        self.bad("rewritten or forked", fx.trust_file([K1], pinned=seen.checkpoint(4)), sequence=3)
        self.bad("rewritten or forked", fx.trust_file([K1], pinned=seen.checkpoint(8)), sequence=7)

    def test_suffix_with_a_foreign_tree_file(self) -> None:
        j = self.rewritten(1)
        j.write(self.data, archived=1)
        path = self.data / "journal" / "00000002.tree"
        fx.put(path, j.tree_file(2, STRANGER))
        self.bad("not signed by", segment=2)
        fx.put(path, fx.small_journal().tree_file(2))  # honest, but of another journal
        self.bad("does not link", segment=2)
        honest = fx.small_journal()
        honest.write(self.data, archived=1)
        fx.put(self.data / "anchor", j.slot(1, 8) + bytes(4096))  # signed, but of a fork
        self.bad("not the anchor's", sequence=7)


class Keys(Case):
    def rotated(self) -> Journal:
        records = fx.small_records()
        records[5] = fx.rotation(K1, K2, T0 + 50)
        return Journal(fx.arrange(records, 2, 2), [K1, K2], [5])

    def test_rotation_to_the_same_key(self) -> None:
        records = fx.small_records()
        records[5] = fx.rotation(K1, K1, T0 + 50)
        Journal(fx.arrange(records, 2, 2), [K1]).write(self.data)
        self.bad("in force already", sequence=5, segment=2)

    def test_keys_of_small_order(self) -> None:
        """Under the neutral element as a key, this signature fits any message."""
        key, signature = b"\1" + bytes(31), b"\1" + bytes(63)
        records = fx.small_records()
        records[5] = Rec(3, b"", T0 + 50, {10: uv(1) + key}, signatures=[signature])
        Journal(fx.arrange(records, 2, 2), [K1]).write(self.data)
        self.bad("is wrong", sequence=5)

    def test_size_0(self) -> None:
        """Signed by any key the trust file names, proving nothing."""
        j = self.rotated()
        j.write(self.data)
        both = [K1, K2]
        for key in both:
            self.assertEqual(self.ok(fx.trust_file(both, pinned=j.checkpoint(0, key)))["proved_by"], "anchor")
        self.bad("not signed", fx.trust_file([K1], pinned=j.checkpoint(0, K2)))
        self.bad("forked", fx.trust_file([K1], pinned=fx.note(0, bytes(32), K1)))
        for key in both:
            fx.put(self.data / "anchor", j.slot(1, 0, key, witnesses=WITNESSES))
            r = self.ok(fx.trust_file(both, witnesses=WITNESSES))
            self.assertEqual((r["records"], r["complete_to"], r["proved_by"]), (8, 0, "anchor"))
        self.bad("another key", fx.trust_file([K1]))
        j.write(self.data, archived=1)
        self.bad("without the archive", fx.trust_file([K1], pinned=j.checkpoint(0)))

    def test_key_in_force_by_size(self) -> None:
        j = self.rotated()
        for size, key, good in ((5, K1, True), (6, K2, True), (5, K2, False), (6, K1, False)):
            j.write(self.data)
            fx.put(self.data / "anchor", j.slot(1, size, key) + bytes(4096))
            self.ok() if good else self.bad("key")
            j.write(self.data)
            trust = fx.trust_file([K1], pinned=j.checkpoint(size, key))
            self.ok(trust) if good else self.bad("not signed by the key in force", trust)

    def test_rotation_across_segments_signs_tree_files(self) -> None:
        j = fx.sample_journal()
        j.write(self.data)
        self.assertNotEqual(j.key_at(j.first[1]), K1)
        fx.put(self.data / "journal" / "00000002.tree", j.tree_file(2, K1))
        self.bad("not signed by the key in force", segment=2)

    def test_only_the_newer_key_trusted(self) -> None:
        self.rotated().write(self.data)
        self.bad("not a trusted one", fx.trust_file([K2]), sequence=0)

    def test_wrong_key_and_wrong_origin(self) -> None:
        fx.small_journal().write(self.data)
        self.bad("not a trusted one", fx.trust_file([K3]), sequence=0)
        self.bad("the anchor is of", fx.trust_file([K1], "other.example"))
        self.bad("checkpoint of 'x.example'", fx.trust_file([K1], pinned=fx.note(4, bytes(32), K1, "x.example")))

    def test_wrong_origin_inside(self) -> None:
        records = fx.small_records()
        records[0] = fx.genesis(K1, "other.example")
        Journal(fx.arrange(records, 2, 2), [K1]).write(self.data)
        self.bad("journal of origin 'other.example'", sequence=0)
        j = fx.small_journal()
        j.write(self.data)
        data = self.seg(2).read_bytes()
        fx.put(self.seg(2), fx.header(2, 4, j.hashes[3], "other.example") + data[96:])
        self.bad("not of origin", segment=2)

    def test_stripped_record_signature(self) -> None:
        for kept, why in (([], "0 signatures for 1"), ([bytes(64)] * 2, "2 signatures for 1"), ([bytes(64)], "is wrong")):
            records = fx.small_records()
            records[5] = Rec(3, b"", T0 + 50, signers=[K1], signatures=kept)
            Journal(fx.arrange(records, 2, 2), [K1]).write(self.data)
            self.bad(why, sequence=5, segment=2)
        records[5] = Rec(3, b"", T0 + 50, signatures=[bytes(64)])
        Journal(fx.arrange(records, 2, 2), [K1]).write(self.data)
        self.bad("1 signatures for 0", sequence=5, segment=2)

    def test_witness_forged(self) -> None:
        j = fx.small_journal()
        j.write(self.data, witnesses=[("w.example.net", STRANGER)])
        r = self.ok(fx.trust_file([K1], witnesses=WITNESSES))
        self.assertEqual(r["proved_by"], "anchor", "a stranger under the witness's name is another key")
        good = j.checkpoint(8, witnesses=WITNESSES).split(b"\n")
        blob = bytearray(base64.b64decode(good[-2].rsplit(b" ", 1)[1]))
        blob[6] ^= 1  # its time
        good[-2] = "— w.example.net ".encode() + base64.b64encode(blob)
        slot = fx.anchor_slot(1, 8, j.hashes[7], j.root(8), K1, b"\n".join(good))
        fx.put(self.data / "anchor", slot + bytes(4096))
        self.bad("signature of w.example.net", fx.trust_file([K1], witnesses=WITNESSES))

    def test_required_witnesses(self) -> None:
        second = ("v.example.net", STRANGER)
        both = [*WITNESSES, second]
        for present, missing in ((both, []), ([second], [WITNESSES[0][0]]), ([], [name for name, _ in both])):
            fx.small_journal().write(self.data, witnesses=present)
            self.assertEqual(self.ok(fx.trust_file([K1], witnesses=both))["missing_witnesses"], missing)
            for require in (1, 2):
                trust = fx.trust_file([K1], witnesses=both, require=require)
                if len(present) >= require:
                    self.ok(trust)
                else:
                    self.bad(f"{require} witnesses are required; missing: w.example.net", trust)
        alias = [("v.example.net", fx.WITNESS)]
        fx.small_journal().write(self.data, witnesses=[*WITNESSES, *alias])
        trust = fx.trust_file([K1], witnesses=[*WITNESSES, *alias, ("u.example.net", STRANGER)], require=2)
        self.bad("2 witnesses are required", trust)  # one key under two names is one witness

    def test_suffix_signed_by_two_keys(self) -> None:
        """During a rotation the old key signs too, after the one in force."""
        j = fx.small_journal()
        j.write(self.data, archived=1)
        number = min(int(p.stem) for p in (self.data / "journal").glob("*.tree"))
        path = self.data / "journal" / f"{number:08}.tree"
        first = j.first[number - 1]
        in_force = j.key_at(first)
        old = b"\xe2\x80\x94 " + j.checkpoint(first, STRANGER).split(b"\xe2\x80\x94 ")[1]
        whole = path.read_bytes()
        fx.put(path, fx.seal(whole[:whole.rindex(b"end ")] + old))
        self.ok(fx.trust_file([in_force]))
        self.ok(fx.trust_file([STRANGER, in_force]))
        self.bad("which is not a trusted key", fx.trust_file([STRANGER]))

    def test_suffix_with_a_pin_or_anchor_before_it(self) -> None:
        j = fx.small_journal()
        j.write(self.data, archived=1)
        self.ok(fx.trust_file([K1], pinned=j.checkpoint(4)))
        self.bad("cannot be compared", fx.trust_file([K1], pinned=j.checkpoint(3)))
        j.write(self.data, archived=1, anchor=3)
        self.bad("cannot be compared")


class Form(Case):
    """Bytes that say the right thing in the wrong form, properly hashed and signed by the true key."""

    def one(self, record: Rec, why: str) -> None:
        Journal([[[fx.genesis(K1), record]]], [K1]).write(self.data)
        self.bad(why, sequence=1, segment=1)

    def body(self, kind: int, body: bytes, why: str) -> None:
        with self.subTest(kind=kind, body=body.hex()):
            self.one(Rec(kind, body, T0), why)

    def head(self, raw: bytes, why: str, body: bytes = b"") -> None:
        with self.subTest(head=raw.hex()):
            self.one(Rec(3, body, T0, raw_head=raw), why)

    def test_heads(self) -> None:
        good = uv(1) + u64(T0) + uv(3) + uv(0)
        Journal([[[fx.genesis(K1), Rec(3, b"", T0, raw_head=good)]]], [K1]).write(self.data)
        self.ok()
        self.head(b"\x81\x00" + u64(T0) + uv(3) + uv(0), "superfluous")
        self.head(uv(1) + u64(T0) + b"\x83\x00" + uv(0), "superfluous")
        self.head(uv(1) + u64(T0) + b"\x83\x80\x00" + uv(0), "superfluous")
        self.head(uv(1) + u64(T0) + uv(3) + b"\x80\x00", "superfluous")
        self.head(b"\xff" * 9 + b"\x02" + u64(T0) + uv(3) + uv(0), "over 64 bits")
        self.head(b"\xff" * 12, "over 64 bits")
        self.head(uv(2) + u64(T0) + uv(3) + uv(0), "sequence 2")
        self.head(uv(1) + u64(T0) + uv(3) + uv(1 << 12), "above bit 11")
        self.head(uv(1) + u64(T0) + uv(900) + uv(1 << 12), "above bit 11")
        self.head(uv(1) + u64(T0), "ends early")
        part = lambda bit, raw: uv(1) + u64(T0) + uv(3) + uv(1 << bit) + raw
        self.head(part(0, uv(0)), "equals the stamp")
        self.head(part(0, scaled(T0 + 1)), "before 1970")
        self.head(part(0, uv(1000 * 4 + 3)), "coarsest")
        for reason in (0, 8, 255):
            self.head(part(5, u8(reason) + uv(0)), "reason")
        self.head(part(5, u8(3) + uv(0)), "left over")
        self.head(part(6, u8(0) + uv(0) + bytes(16)), "idempotency")
        self.head(part(6, u8(0) + uv(65) + bytes(81)), "idempotency")
        self.head(part(6, u8(0) + uv(4) + bytes(19)), "ends early")
        self.head(part(6, u8(2) + uv(1) + bytes(17)), "bool")
        self.head(part(11, u8(0)), "left over")
        self.head(part(7, uv(0)), "bytes of text")
        self.head(part(10, uv(0)), "items")
        self.head(part(10, uv(3) + bytes(96)), "items")

    def test_texts(self) -> None:
        for raw, why in ((b"", "bytes of text"), (b"x" * 129, "bytes of text"), (b"\xff", "UTF-8"), (b"\xed\xa0\x80", "UTF-8"),
                         (b"\xc0\x80", "UTF-8"), (" a", "outer"), ("a ", "outer"), ("a\u00a0", "outer"), ("a\nb", "control"),
                         ("a\x7fb", "control"), ("a\u0085b", "control"), ("a\u200bb", "invisible"), ("\ufeffa", "invisible"),
                         ("a\u202eb", "invisible"), ("a\u2028b", "invisible"), ("a\u00adb", "invisible"), ("a\u2060b", "invisible"),
                         ("a\u206fb", "invisible"), ("a\ufffbb", "invisible"), ("a\U000e0001b", "invisible"),
                         ("a\U000e007fb", "invisible"), ("\u3000a", "outer"), ("a\u1680", "outer"), ("a\u202f", "outer")):
            self.body(15, uv(1) + uv(1) + text(raw), why)
        for raw in ("\u3164", "a\u202fb", "a b", "a\u3000b", "a\u0300", "\u0300a", "\U000e0080", "\U000e01ef", "\ufff8", "\ufffc",
                    "\u200a\u200a".join("ab"), "\u061c", "\ufe0f", "\ue000", "\U0010ffff", "\u180ea"):
            Journal([[[fx.genesis(K1), Rec(15, uv(1) + uv(1) + text(raw), T0)]]], [K1]).write(self.data)
            self.ok()

    def test_widths(self) -> None:
        """Class below 2^16; kind, versions and the numbers of things below 2^32; all others below 2^64."""
        def sample(kind: int, nth: int, fill: bytes) -> bytes:
            o, t = fx.opt, text("n")
            return {
                10: fill + t + u8(1) + o(None) + uv(1) + u8(0), 12: fill, 14: fill, 16: fill, 18: fill, 20: fill, 21: fill,
                22: [fill + o(None), uv(1) + o(fill)][nth % 2] + u64(T0) + b"EUR" + uv(0) * 5 + uv(0) * 2 + uv(0) * 3,
                23: fill, 24: fill + u64(T0) + u8(1) * 4,
                11: fill + t + u8(1) + o(None) * 7, 13: fill + t + o(None) + u8(1) + o(None),
                15: [fill + uv(1), uv(1) + fill][nth % 2] + t, 17: [fill + uv(1), uv(1) + fill][nth % 2] + t,
                2: uv(1) + t + fill + o(None), 31: fill, 32: fill, 33: fill, 35: fill, 34: fill + u64(T0),
                36: fill + u8(0) * 2 + u8(0), 37: fill + uv(2**64 - 1) + bytes(16), 38: fill, 61: fill,
                60: [fill + t + bytes(32) + u8(1) + o(None) * 4, uv(1) + t + bytes(32) + u8(1) + o(fill) + o(None) * 3,
                     uv(1) + t + bytes(32) + u8(1) + o(None) + o(fill) + o(None) * 2,
                     uv(1) + t + bytes(32) + u8(1) + o(None) * 2 + o(fill) + o(None),
                     uv(1) + t + bytes(32) + u8(1) + o(None) * 3 + o(fill)][nth % 5] + fx.many([uv(2**64 - 1)]) + o(None),
                25: [fill + o(None) * 2 + uv(1) + o(None) * 3, uv(1) + o(None) * 2 + fill + o(None) * 3,
                     uv(1) + o(None) * 2 + uv(1) + o(fill) + o(None) * 2][nth % 3],
                52: [uv(1) + u8(1) + fill + fx.many([uv(1) + fx.many([uv(1) * 3])]),
                     uv(1) + u8(1) + uv(1) + fx.many([fill + fx.many([uv(1) * 3])])][nth % 2] + leases(1),
                72: [uv(1) + fill + uv(1) * 3, uv(1) * 3 + fill + uv(1), uv(1) * 4 + fill][nth % 3],
                78: uv(1) + o(fill) + uv(1),
                100: fill + o(None) + scaled(1) + b"EUR" + u8(1), 101: fill + o(None),
                47: fill + leases(1), 51: [fill + u8(1) + uv(1), uv(1) + u8(1) + fill][nth % 2] + leases(1),
                41: [o(fill) + uv(0) + scaled(1) + u8(1) + uv(1) + u8(1) + uv(1) * 4,
                     o(None) + uv(0) + scaled(1) + u8(1) + fill + u8(1) + uv(1) * 4,
                     o(None) + uv(0) + scaled(1) + u8(1) + uv(1) + u8(1) + fill + uv(1) * 3,
                     o(None) + uv(0) + scaled(1) + u8(1) + uv(1) + u8(2) + fill + u64(T0)][nth % 4],
                40: [uv(1) + fill + uv(1) + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0),
                     uv(1) * 2 + fill + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0),
                     uv(1) * 3 + scaled(5) + u8(2) + fill + fx.many([uv(1) * 3]) + uv(0),
                     uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x40) + fill,
                     uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x80) + uv(1) + fill,
                     uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x100) + fill][nth % 6],
            }[kind]

        kinds = (2, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 31, 32, 33, 34, 35, 36, 37, 38, 40, 41, 47, 51, 52, 60, 61, 72, 78, 100, 101)
        for kind, nth, bits in [(k, n, 32) for k in kinds for n in range(6)] + [(10, 0, 16)]:
            record = lambda n: Rec(kind, sample(kind, nth, uv(n)), T0).hashed(bytes(32), 1)
            self.assertEqual(vf.decode_record(record(2**bits - 1)).kind, kind)
            self.assertRaisesRegex(vf.Malformed, f"over {bits} bits", vf.decode_record, record(2**bits))
        for n, wide in ((2**16 - 1, False), (2**16, True)):
            for kind, body in ((19, uv(1) * 2 + fx.opt(None) + fx.opt(uv(n)) + fx.opt(None) + u8(0) + fx.opt(None) + u8(1) * 2 + uv(5)),
                               (30, uv(1) + text("n") + uv(1) + fx.opt(None) * 2 + uv(0) + u8(1) + fx.many([uv(n) + uv(2**64 - 1)])),
                               (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(n) + uv(2**64 - 1) * 2]) + uv(0)),
                               (41, fx.opt(None) + uv(1) + uv(n) + uv(1) + scaled(1) + u8(1) + uv(1) + u8(3) + uv(1) * 3),
                               (41, fx.opt(None) + uv(0) + scaled(1) + u8(1) + uv(1) + u8(3) + uv(n) + uv(2**64 - 1) * 2)):
                hashed = Rec(kind, body, T0).hashed(bytes(32), 1)
                if wide:
                    self.assertRaisesRegex(vf.Malformed, "over 16 bits", vf.decode_record, hashed)
                else:
                    vf.decode_record(hashed)
        for parts, bits in (({1: 0}, 32), ({2: 0}, 32), ({3: 0}, 32), ({4: 0}, 32), ({5: u8(2)}, 32), ({5: u8(1)}, 64)):
            for n in (2**bits - 1, 2**bits):
                raw = {bit: (before or b"") + uv(n) for bit, before in parts.items()}
                hashed = Rec(3, b"", T0, raw).hashed(bytes(32), 1)
                if n >> bits:
                    self.assertRaisesRegex(vf.Malformed, f"over {bits} bits", vf.decode_record, hashed)
                else:
                    vf.decode_record(hashed)
        vf.decode_record(Rec(2**32 - 1, b"x", T0).hashed(bytes(32), 1))
        self.assertRaisesRegex(vf.Malformed, "over 32 bits", vf.decode_record, Rec(2**32, b"x", T0).hashed(bytes(32), 1))

    def test_stamps_going_back(self) -> None:
        self.one(Rec(3, b"", T0 - 1), "stamp goes back")
        Journal([[[fx.genesis(K1)]], [[Rec(3, b"", T0 - 1)]]], [K1]).write(self.data)
        self.bad("stamp goes back", sequence=1, segment=2)
        Journal([[[fx.genesis(K1), Rec(3, b"", T0)]]], [K1]).write(self.data)
        self.ok()

    def test_last_stamp_in_the_future(self) -> None:
        Journal([[[fx.genesis(K1), Rec(3, b"", T0)]]], [K1]).write(self.data)
        path = self.base / "trust"
        fx.put(path, fx.trust_file([K1]))
        for ahead, warnings in ((0, []), (60 * 10**9, []), (61 * 10**9, ["stamp_in_future"])):
            result = vf.verify(self.data, vf.read_trust(path), now=T0 - ahead)
            self.assertEqual((result["ok"], result["warnings"]), (True, warnings))

    def test_scaled(self) -> None:
        r = lambda raw: vf.Reader(raw)
        self.assertEqual(r(scaled(2**120 - 1)).scaled(), 2**120 - 1)
        for value in (0, 1, 999, 1000, 1001, 10**6, 10**9, 10**9 + 1, 2**64 - 1):
            self.assertEqual(r(scaled(value)).span(), value)
        for raw in (uv(1), uv(2), uv(3), uv(1000 * 4 + 1), uv(5000 * 4 + 2), uv(2000 * 4 + 3)):
            self.assertRaisesRegex(vf.Malformed, "coarsest", r(raw).scaled)
        self.assertRaisesRegex(vf.Malformed, "too large", r(uv((2**120 // 10**9 + 1) * 4)).scaled)
        self.assertRaisesRegex(vf.Malformed, "too large", r(uv((2**64 + 1) * 4 + 3)).span)

    def test_bodies(self) -> None:
        act = fx.ACT

        def card(currency: bytes = b"EUR", gpu: bytes = uv(1), classes: bytes = uv(0), tiers: bytes = uv(0), last: bytes = uv(1)) -> bytes:
            return uv(1) + fx.opt(None) + u64(T0) + currency + gpu + uv(1) * 4 + classes + tiers + uv(1) * 2 + last

        lists: list[tuple[int, bytes, str]] = [
            (1, uv(1) + text(ORIGIN) + K1.public + text("s"), "no other"),
            (3, b"\0", "left over"),
            (10, uv(1) + text("g") + u8(6) + fx.opt(None) + uv(1) + u8(0), "resource kind"),
            (10, uv(1) + text("g") + u8(1) + u8(2) + uv(1) + u8(0), "bool"),
            (10, uv(1) + text("g") + u8(1) + fx.opt(None) + uv(1) + u8(2), "bool"),
            (11, uv(1) + text("p") + u8(0) + fx.opt(None) * 7, "strategy"),
            (13, uv(1) + text("t") + fx.opt(None) + u8(4) + fx.opt(None), "priority"),
            (19, uv(1) + uv(1) + fx.opt(None) * 3 + u8(3) + fx.opt(None) + u8(1) + u8(1) + uv(5), "node scope"),
            (19, uv(1) + uv(1) + fx.opt(None) * 3 + u8(0) + fx.opt(u8(0)) + u8(1) + u8(1) + uv(5), "priority"),
            (19, uv(1) + uv(1) + fx.opt(None) * 3 + u8(0) + fx.opt(None) + u8(5) + u8(1) + uv(5), "measure"),
            (19, uv(1) + uv(1) + fx.opt(None) * 3 + u8(0) + fx.opt(None) + u8(1) + u8(4) + uv(5), "limit"),
            (22, card(currency=b"EUr"), "currency"),
            (22, card(gpu=uv(10**15 + 1)), "above 1000000"),
            (22, card(classes=fx.many([uv(1) + uv(10**15 + 1)])), "above 1000000"),
            (22, card(classes=fx.many([uv(1) + uv(1)] * 2)), "do not rise"),
            (22, card(classes=fx.many([uv(2) + uv(1), uv(1) + uv(1)])), "do not rise"),
            (22, card(classes=fx.many([uv(n) + uv(1) for n in range(1025)])), "1025 items"),
            (22, card(tiers=fx.many([text("b") + uv(1), text("a") + uv(1)])), "do not rise"),
            (22, card(tiers=fx.many([text("a") + uv(10**12 + 1)])), "above 1000"),
            (22, card(last=uv(10**12 + 1)), "above 1000"),
            (24, uv(1) + u64(T0) + u8(0) + u8(1) * 3, "charge"),
            (24, uv(1) + u64(T0) + u8(1) * 3 + u8(4), "charge"),
            (30, uv(1) + text("n") + uv(1) + fx.opt(None) * 2 + uv(4097), "4097 items"),
            (36, uv(1) + u8(3) + u8(0) + u8(0), "level"),
            (36, uv(1) + u8(0) + u8(0) + u8(2), "bool"),
            (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + uv(0) + uv(0), "items"),
            (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + uv(17), "items"),
            (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x2000), "unknown flags"),
            (41, fx.opt(None) + uv(0) + scaled(1) + u8(1) + uv(1) + u8(3) + uv(1) * 3 + uv(0), "unknown flags"),
            (41, fx.opt(None) + uv(0) + scaled(1) + u8(1) + uv(1) + u8(3) + uv(1) * 3 + uv(0x40), "unknown flags"),
            (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x200) + uv(5), "unknown levels"),
            (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x200) + uv(1 << 15), "unknown levels"),
            (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x400) + u8(4), "weights"),
            (26, uv(1) + fx.opt(uv(250) * 3 + uv(251)), "add up"),
            (40, uv(1) * 3 + scaled(5) + u8(2) + uv(3) + fx.many([uv(1) * 3]) + uv(0x80) + uv(0), "items"),
            (41, fx.opt(None) + uv(17), "items"),
            (41, fx.opt(None) + uv(0) + scaled(5) + u8(1) + uv(3) + u8(7), "cause"),
            (41, fx.opt(None) + uv(0) + scaled(5) + u8(1) + uv(3) + u8(4) + fx.opt(None) + scaled(10**37), "too large"),
            (100, uv(1) + fx.opt(None) + scaled(1) + b"eur" + u8(1), "currency"),
            (100, uv(1) + fx.opt(None) + scaled(1) + b"EUR" + u8(3), "mode"),
            (100, uv(1) + fx.opt(None) + scaled(10**37) + b"EUR" + u8(1), "too large"),
            (42, uv(1) + u8(0) + u64(T0) + uv(1) + scaled(5), "earliest"),
            (42, uv(1) + u8(1) + u64(T0) + uv(1) + scaled(0) + u8(0), "none does"),
            (42, uv(0) + u8(0) + u64(T0), "leases"),
            (42, uv(2) + u8(0) + u64(2**64 - 1) + uv(1) + scaled(0) + uv(0) + scaled(1), "deadline"),
            (44, uv(0) + u8(0), "leases"),
            (44, uv(1025) + u8(0), "leases"),
            (44, uv(2) + uv(2**64 - 1) + uv(0) + u8(0), "lease number"),
            (46, leases(1) + u8(3) + u8(0), "cause"),
            (50, uv(1) + u8(1) + uv(1) + u8(0), "none does"),
            (50, uv(1) + u8(2) + uv(1), "bool"),
            (50, uv(1) + u8(1) + uv(1) + u8(1) + act[:-3] + u8(0x20), "."),
            (50, uv(1) + u8(1) + uv(1) + u8(1) + scaled(1) * 3 + u8(0x20) + scaled(1), "unknown waiting"),
            (50, uv(1) + u8(1) + uv(1) + u8(1) + scaled(1) * 3 + u8(0x01) + scaled(0), "zero written out"),
            (52, uv(1) + u8(1) + uv(1) + uv(0), "items"),
            (52, uv(1) + u8(1) + uv(1) + uv(1025), "items"),
            (52, uv(1) + u8(1) + uv(1) + fx.many([uv(1) + uv(0)]), "items"),
            (52, uv(1) + u8(1) + uv(1) + fx.many([uv(1) + uv(17)]), "items"),
            (70, fx.opt(None) + uv(4097), "4097 items"),
            (70, fx.opt(None) + uv(0) + uv(1) + u8(2) + fx.opt(None) * 2 + u8(0) * 2 + uv(0) + fx.opt(u8(4)), "domain"),
            (76, uv(1) + u8(8), "attempt end"),
            (60, uv(1) + text("t") + bytes(32) + u8(0) + fx.opt(None) * 4 + uv(0) + fx.opt(None), "role"),
            (60, uv(1) + text("t") + bytes(32) + u8(8) + fx.opt(None) * 4 + uv(0) + fx.opt(None), "role"),
            (60, uv(1) + text("t") + bytes(32) + u8(6) + fx.opt(None) * 4 + fx.many([uv(1)] * 65) + fx.opt(None), "65 items"),
        ]
        for kind, body, why in lists:
            self.body(kind, body, why)

    def test_every_sample_is_prefix_free(self) -> None:
        """A body that is shorter or longer than it says is refused, for every kind."""
        self.assertEqual({k for k, _ in fx.SAMPLES} | {1, 4, 7}, set(vf.KINDS) | {777})
        for kind, body in fx.SAMPLES:
            if kind == 777:
                continue
            whole = Rec(kind, body, T0).hashed(bytes(32), 1)
            self.assertEqual(vf.decode_record(whole).kind, kind)
            self.assertRaises(vf.Malformed, vf.decode_record, whole + b"\0")
            # What else was asked, and what was added to a kind later, stands at the end, and may be absent.
            plain = next((len(b) for k, b in fx.SAMPLES if k == kind and b != body and body.startswith(b)), None)
            for cut in (n for n in range(len(body)) if n != plain):
                self.assertRaises(vf.Malformed, vf.decode_record, whole[:len(whole) - len(body) + cut])

    def test_genesis(self) -> None:
        Journal([[[fx.genesis(K1, version=2)]]], [K1]).write(self.data)
        self.bad("format version 2 in a segment of version 1", sequence=0)
        Journal([[[Rec(3, b"", T0)]]], [K1]).write(self.data)
        self.bad("journal.genesis", sequence=0)
        first = fx.genesis(K1)
        first.parts[11] = b""
        Journal([[[first]]], [K1]).write(self.data)
        self.bad("continues", sequence=0)

    def test_headers(self) -> None:
        j = fx.small_journal()
        for number, h, why in ((1, fx.header(1, 0, bytes(32), version=3), "format version 3"),
                               (2, fx.header(2, 4, j.hashes[3], version=3), "format version 3"),
                               (2, fx.header(3, 4, j.hashes[3]), "number 3"),
                               (2, fx.header(2, 5, j.hashes[3]), "record 5"),
                               (2, fx.header(2, 4, j.hashes[2]), "link"),
                               (1, fx.header(1, 0, j.hashes[2]), "link")):
            j.write(self.data)
            fx.put(self.seg(number), h + j.segments[number - 1][96:])
            self.bad(why, segment=number)
        for at, why in ((0, "not a segment"), (90, "zero bytes")):
            h = bytearray(fx.header(2, 4, j.hashes[3])[:92])
            h[at] ^= 1
            fx.put(self.seg(1), j.segments[0])
            fx.put(self.seg(2), bytes(h) + struct.pack("<I", zlib.crc32(h)) + j.segments[1][96:])
            self.bad(why, segment=2)

    def test_segment_without_batches_in_the_middle(self) -> None:
        parts = fx.arrange(fx.small_records(), 2, 2)
        Journal([parts[0], [], parts[1]], [K1]).write(self.data, trees=False)
        self.bad("without batches", segment=2)

    def test_batches(self) -> None:
        j = fx.small_journal(4)
        frames = [j.segments[0][at:at + n] for _, at, n in j.spans]
        top = j.segments[0][:96]

        def raw(payload: bytes, count: int) -> bytes:
            sizes = struct.pack("<II", len(payload), count)
            return b"LHB1" + sizes + struct.pack("<I", zlib.crc32(sizes + payload)) + payload

        for tail, why in ((raw(b"".join(frames), 3), "belong to no record"), (raw(b"".join(frames), 5), "ends early"),
                          (raw(b"".join(frames) + b"\0", 4), "belong to no record"),
                          (raw(b"", 0), "batch of 0"), (raw(b"".join(frames), 65_537), "batch of 65537"),
                          (raw(struct.pack("<I", 31 * 4) + bytes(31), 1), "frame of 31"),
                          (raw(struct.pack("<I", 262_145 * 4) + bytes(262_145), 1), "frame of 262145"),
                          (raw(struct.pack("<I", 40 * 4 + 3) + bytes(300), 1), "3 signatures"),
                          (raw(bytes(16_777_217), 1), "anchor knows")):
            j.write(self.data)
            fx.put(self.seg(1), top + tail)
            self.bad(why, segment=1)

    def test_tree_files(self) -> None:
        j = fx.small_journal(12)
        path = self.data / "journal" / "00000003.tree"
        good = j.tree_file(3)
        content = good[:good.rindex(b"end ")]
        for broken, why in ((good[:-1], "end"), (good + b"\0", "end"), (b"", "end"),
                            (fx.seal(content.replace(b"tree v1", b"tree v2")), "format version"),
                            (fx.seal(content.replace(b"size 8", b"size 08")), "decimal"),
                            (fx.seal(content.replace(b"size 8", b"size 9")), "parts"),
                            (fx.seal(content.replace(b"part ", b"head ")), "lines are"),
                            (fx.seal(content.replace(b"head " + j.hashes[7].hex().encode(), b"head " + b"0" * 64)), "another journal"),
                            (j.tree_file(2), "another journal")):
            j.write(self.data)
            fx.put(path, broken)
            self.bad(why)
        j.write(self.data)
        fx.put(self.data / "journal" / "00000009.tree", good)
        self.bad("was cut: 00000009.tree")
        j.write(self.data)
        put = lambda number: fx.put(self.data / "journal" / f"{number:08}.tree", good)
        put(1)
        self.bad("nothing lies before")
        j.write(self.data, unbegun=True)
        put(4)
        self.bad("was cut: 00000004.tree")
        j.write(self.data)
        put(0)
        self.ok()


class CommandLine(Case):
    def call(self, *args: str) -> tuple[int, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            try:
                code = vf.main(list(args))
            except SystemExit as e:
                code = int(e.code or 0)
        return code, out.getvalue()

    def test_exit_codes_and_output(self) -> None:
        j = fx.sample_journal()
        j.write(self.data, archive=self.archive, archived=2, torn=b"torn")
        trust = self.base / "trust"
        fx.put(trust, fx.trust_file([K1]))
        args = [str(self.data), "--trust", str(trust), "--archive", str(self.archive)]
        code, out = self.call(*args)
        self.assertEqual(code, 0)
        self.assertIn("torn end", out)
        code, out = self.call(*args, "--json")
        self.assertEqual((code, json.loads(out)["ok"], json.loads(out)["first_bad"]), (0, True, None))
        fx.put(self.archive / "00000001.seg", b"x")
        code, out = self.call(*args)
        self.assertEqual(code, 3)
        self.assertRegex(out, "FAILED: record 0, segment 1, offset 0")
        code, out = self.call(*args, "--json")
        self.assertEqual((code, json.loads(out)["ok"], json.loads(out)["first_bad"]["segment"]), (3, False, 1))
        self.assertEqual(self.call(str(self.data))[0], 2)
        self.assertEqual(self.call(str(self.data / "nowhere"), "--trust", str(trust))[0], 2)
        self.assertEqual(self.call(str(self.data), "--trust", str(self.base / "nowhere"))[0], 2)

    def test_trust_files(self) -> None:
        fx.small_journal().write(self.data)
        good = fx.trust_file([K1]).decode()
        key = K1.vkey(ORIGIN)
        for broken in ("", good.replace("v1", "v2"), good.replace("origin ", "origins "), good[:-1],
                       good.replace(f"key {key}\n", ""), good.replace(key, key.replace("+", "+0", 1)), good + "end 00\n",
                       good.replace(key, K1.vkey("other.example")), good.replace(key, K1.vkey(ORIGIN, 4)),
                       good + f"origin {ORIGIN}\n", good + f"witness {K1.vkey('w', 1)}\n", good + "checkpoint\n",
                       good + "checkpoint\nx\n1\nAAAA\n\n"):
            with self.subTest(broken=broken):
                path = self.base / "trust"
                fx.put(path, broken.encode())
                self.assertEqual(self.call(str(self.data), "--trust", str(path))[0], 2)
        witness = "witness " + fx.WITNESS.vkey("w", 4)
        for number in ("0", "2", "01", "+1", "one", "1\nrequire 1", "1\n" + witness + "\nrequire 1"):
            fx.put(path, (good + f"{witness}\nrequire {number}\n").encode())
            self.assertEqual(self.call(str(self.data), "--trust", str(path))[0], 2, number)
        for fine in (good + "\n", "# mine\n\n" + good, good.replace("\n", "\n\n#\n"), good + f"key {K2.vkey(ORIGIN)}\n"):
            fx.put(path, fine.encode())
            self.assertEqual(self.call(str(self.data), "--trust", str(path))[0], 0)


class Version2(Case):
    def test_everything(self) -> None:
        j = fx.sample_journal(version=2)
        for size in (1, 20, j.size):
            j.write(self.data, anchor=size, before=max(size - 1, 1), unbegun=True)
            r = self.ok()
            self.assertEqual((r["records"], r["complete_to"], r["chained_not_signed"]), (j.size, size, j.size - size))

    def test_conversion(self) -> None:
        j = fx.converted_journal()
        j.write(self.data)
        self.assertEqual(self.ok()["records"], 9)
        j.write(self.data, archived=2)
        self.ok()

    def test_only_the_conversion_record_changes_the_version(self) -> None:
        records = fx.small_records(8)
        parts = fx.arrange(records, 2, 2)
        Journal(parts, [K1], versions=[1, 2]).write(self.data)
        self.bad("does not begin with a conversion record", sequence=4, segment=2)
        for at in (1, 3, 5):
            mixed = records[:at] + [fx.converted(at * 10 - 5)] + records[at:]
            Journal(fx.arrange(mixed, 2, 2), [K1]).write(self.data)
            self.bad("conversion record that does not begin", sequence=at)
        j = fx.converted_journal()
        j.segments[3] = fx.header(4, j.first[3], j.hashes[j.first[3] - 1], version=1) + j.segments[3][96:]
        j.write(self.data)
        self.bad("format version 1 after 2", segment=4)
        first = [fx.genesis(K1, version=2)] + records[1:]
        Journal(fx.arrange(first, 2, 2), [K1], versions=[2, 1]).write(self.data)
        self.bad("format version 1 after 2", segment=2)

    def test_a_batch_of_another_version_is_no_batch(self) -> None:
        j = fx.converted_journal()
        frame = Rec(3, b"", T0 + 100).hashed(j.hashes[-1], j.size)
        late = fx.batch([Rec(3, b"", T0 + 100).frame(frame)])
        j.write(self.data, torn=late)
        self.assertIsNotNone(self.ok()["torn"])
        late = fx.batch([Rec(3, b"", T0 + 100).frame(frame)], version=2)
        j.write(self.data, torn=late)
        self.assertEqual(self.ok()["chained_not_signed"], 1)

    def test_epochs_grow(self) -> None:
        def start(epoch: int) -> Rec:
            return Rec(2, uv(epoch) + text("leasehold 0.1") + uv(3) + b"\0", T0)
        for epochs, good in (((1, 2), True), ((3, 9), True), ((2, 2), False), ((3, 2), False), ((0,), False)):
            Journal([[[fx.genesis(K1)] + [start(e) for e in epochs]]], [K1]).write(self.data)
            self.ok() if good else self.bad("epoch")

    def test_anchors(self) -> None:
        j = fx.sample_journal(version=2)
        j.write(self.data)
        whole = (self.data / "anchor").read_bytes()
        text_of = whole[4096:].rstrip(b"\0").rpartition(b"end ")[0]
        for change in (lambda t: t.replace(b"state open", b"state ajar"), lambda t: t.replace(b"mac 5a", b"mac 5"),
                       lambda t: t.replace(b"state open\n", b""), lambda t: t[:t.rfind(b"mac ")]):
            fx.put(self.data / "anchor", fx.seal(change(text_of)).ljust(4096, b"\0"))
            self.bad("no slot of the anchor fits")
        fx.put(self.data / "anchor", fx.seal(text_of.replace(b"state open", b"state closed")).ljust(4096, b"\0"))
        self.ok()
        fx.put(self.data / "anchor", fx.seal(text_of.replace(b"anchor v2", b"anchor v3")).ljust(4096, b"\0"))
        self.bad("another format version")

    def test_trust_files_have_no_carriage_returns(self) -> None:
        fx.small_journal().write(self.data)
        good = fx.trust_file([K1])
        for bad in (good.replace(b"\n", b"\r\n"), good.replace(b"fixtures.py\n", b"fixtures.py\r\n"), good + b"\r\n"):
            with self.assertRaises(vf.UsageError):
                self.run_it(bad)


if __name__ == "__main__":
    unittest.main()
