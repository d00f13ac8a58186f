#!/usr/bin/env python3
"""A second, independent verifier of invoices: it checks proof files of version 1 without the daemon.

    invoice.py FILE --trust TRUST [--with FILE]... [--json]

Exit status: 0 every line follows from the records, 3 it does not, 2 the call or the trust file is unusable.

Written from the documents alone (docs/reference/invoice-proof.md, journal-format.md, semantics.md). Where they leave a
choice, "ASSUMED" says what was taken. The parts: `proof_file.py` reads the file and proves that its records are in the
journal, `lists.py` folds records into the lists, `usage.py` computes what was used, `ledger.py` follows the entries and
computes the invoice. This file decides which records belong, and holds everything against the statement.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Optional

import verify as v
from ledger import Books, Wrong, check_invoice, money, sums_of, to_decimals
from lists import Common, Nodes, Tenant, is_common, owner
from proof_file import ProofFile, check_checkpoint, check_multiproof, check_signatures, parse
from records import KINDS, LineKey, Sealed, month_start, month_text
from usage import Payer, Prices, Usage, usage_of
from verify import Frontier, Malformed, UsageError, sha256

CLOSING, ISSUED, CLOSED_PERIOD, STATED, APPLIED, USAGE, TAX = 150, 151, 152, 176, 159, 168, 154
ABOUT_NODES = (32, 33, 34, 35)  # drained, resumed, lost, returned
SERIES = {1: "INV", 2: "CN"}
ALWAYS_NOT_PROVED = [
    "that no record of the tenant is missing in the statement: a full verification of the journal shows that",
    "that nodes which the tenant claimed have the capacity, and evictions the cause, that the list states",
    "that what the records say is true"]


@dataclass
class Bill:
    """What a file says, once its records are proved to be in the journal."""
    file: ProofFile
    checkpoint: v.Checkpoint
    invoice: Sealed
    statement: Sealed
    start: tuple[Tenant, Common, Nodes]
    failures: list[Wrong] = field(default_factory=list)
    not_proved: list[str] = field(default_factory=list)
    later: list[Sealed] = field(default_factory=list)  # after the cut, up to the invoice
    applied: list[Sealed] = field(default_factory=list)

    @property
    def tenant(self) -> int:
        return self.invoice.tenant

    @property
    def month(self) -> int:
        return self.invoice.body["month"]

    def wrong(self, code: str, kind: str, name: str | int, sentence: str, expected: Any = None,
              found: Any = None) -> None:
        self.failures.append(Wrong(code, (kind, str(name)), f"{kind} {name}: {sentence}", expected, found))


    def of_currency(self, currency: str, e: Wrong) -> None:
        """ASSUMED: what is wrong with entries of another currency is said, and does not make this invoice wrong."""
        if currency == self.invoice.body["currency"]:
            self.failures.append(e)
        else:
            self.not_proved.append(f"entries in {currency}, of which something is wrong: {e.sentence}")


def one(records: Iterable[Sealed], what: str) -> Sealed:
    found = list(records)
    if len(found) != 1:
        raise Wrong("wrong_records", ("records", what), f"the file has {len(found)} records that are {what}, not one",
                    1, len(found))
    return found[0]


def open_file(data: bytes, trust: v.Trust) -> tuple[Bill, bool]:
    """Rules 1 to 3: form, checkpoint, signatures and the multiproof."""
    file = parse(data)
    check_signatures(file.framed)
    checkpoint, pinned = check_checkpoint(file, trust)
    check_multiproof(file, checkpoint)
    invoice = one((r for r in file.records if r.kind == ISSUED and r.body["number"] == file.number), "the invoice")
    if invoice.tenant is None:
        raise Wrong("wrong_records", ("record", str(invoice.sequence)), "the invoice names no tenant in its head")
    statement = one((r for r in file.records if r.kind == STATED and r.sequence > invoice.sequence), "the statement")
    lists = []
    for name, raw, read in (("tenant at start", file.tenant, Tenant.parse),
                            ("common at start", file.common, Common.parse), ("claimed nodes", file.nodes, Nodes.parse)):
        try:
            lists.append(read(raw))
        except Malformed as e:
            raise Wrong("malformed", ("list", name), f"the list {name} does not decode: {e}") from None
        if lists[-1].encode() != raw:
            raise Wrong("malformed", ("list", name), f"the list {name} is not in its one form")
    return Bill(file, checkpoint, invoice, statement, tuple(lists)), pinned


def check_heads(bill: Bill) -> None:
    """The statement is about this invoice, and the lists are those that it states."""
    s, i = bill.statement, bill.invoice
    if (s.tenant, s.body["month"]) != (i.tenant, bill.month):
        bill.wrong("wrong_statement", "record", s.sequence, "the statement is about another tenant or month",
                   (i.tenant, bill.month), (s.tenant, s.body["month"]))
    if not s.body["from"] <= s.body["border"] <= s.body["cut"] < i.sequence:
        bill.wrong("wrong_statement", "record", s.sequence, "its range, border and cut are out of order")
    if bill.start[0].number != i.tenant:
        bill.wrong("wrong_list", "list", "tenant at start", "it is that of another tenant", i.tenant,
                   bill.start[0].number)
    for name, raw, hash_name in (("tenant at start", bill.file.tenant, "own_start"),
                                 ("common at start", bill.file.common, "common_start"),
                                 ("claimed nodes", bill.file.nodes, "nodes")):
        same_list(bill, name, raw, s.body[hash_name])


def same_list(bill: Bill, name: str, raw: bytes, stated: bytes) -> None:
    if sha256(raw) != stated:
        bill.wrong("wrong_list", "list", name, "it does not have the hash that the statement names", stated.hex(),
                   sha256(raw).hex())


class Fold:
    """Reads the records of a bill in order, and says which of them belong there."""

    def __init__(self, bill: Bill, tenant: Tenant, common: Common, nodes: Nodes) -> None:
        self.bill, self.tenant, self.common, self.nodes = bill, tenant, common, nodes
        self.reports: list[tuple[Sealed, Optional[int]]] = []
        self.books = Books(tenant.payers)
        self.priced: Optional[Prices] = None  # until a common record changes something
        self.own, self.shared = Frontier(), Frontier()
        self.at_earlier_cut: Optional[Usage] = None  # of the hours before the month, at the cut of the month before

    def belongs(self, r: Sealed) -> bool:
        """Reads a record of the range; false if it is nobody's or somebody else's."""
        if is_common(r, self.common):
            self.shared.append(r.hash)
            self.common.fold(r)
            self.priced = None
            return True
        about_node = r.kind in ABOUT_NODES and r.body[0] in self.tenant.claims
        if owner(r, {r.body[0]: self.tenant.number} if about_node else {}) != self.tenant.number:
            return False
        self.own.append(r.hash)
        if r.kind == USAGE:
            instance = r.body["instance"]
            known = self.tenant.instances.get(instance) or self.common.instances.get(instance)
            self.reports.append((r, known[0] if known else None))
        self.entry(r)
        try:
            self.tenant.fold(r, self.nodes)
        except Malformed as e:
            self.bill.wrong("unexpected_record", "record", r.sequence, str(e))
        return True

    @property
    def prices(self) -> Prices:
        if self.priced is None:
            self.priced = Prices(self.common)
        return self.priced

    def usage(self, window: tuple[int, int]) -> Usage:
        try:
            return usage_of(self.tenant, self.common, self.reports, window)
        except (KeyError, Malformed) as e:
            raise Wrong("unknown_price", ("file", "usage"), f"usage names something that is in no list: {e}") from None

    def entry(self, r: Sealed) -> None:
        self.books.follow(r, self.prices)
        self.drain()

    def drain(self) -> None:
        for currency, e in self.books.wrong:
            self.bill.of_currency(currency, e)
        self.books.wrong.clear()


def check_records(bill: Bill, fold: Fold) -> None:
    """Rules 4 and 5: exactly the records that belong, their counts and roots, and the lists at the border."""
    s = bill.statement.body
    closed = [r for r in bill.file.records if r.kind == CLOSED_PERIOD and r.sequence > bill.invoice.sequence]
    if len(closed) != 1 or closed[0].body["month"] != bill.month:
        bill.wrong("wrong_records", "records", "the end of the month", "it is not there once")
    at_border = False
    for r in bill.file.records:
        if r.sequence >= s["border"] and not at_border:
            at_border = border_lists(bill, fold)
        if r.sequence < s["cut"]:
            earlier_cut = r.kind == CLOSING and r.body["month"] == bill.month - 1
            if earlier_cut:
                fold.at_earlier_cut = fold.usage((0, month_start(bill.month)))
            known = r.sequence >= s["from"] and (earlier_cut or fold.belongs(r))
        elif r.sequence == s["cut"]:
            known = r.kind == CLOSING and r.body["month"] == bill.month
        elif r.sequence <= bill.invoice.sequence:
            known = r.tenant == bill.tenant
            bill.later.append(r)
        else:
            known = belongs_after(bill, r)
        if not known:
            bill.wrong("foreign_record", "record", r.sequence, f"{r.name} does not belong in this file")
    if not any(r.sequence == s["cut"] for r in bill.file.records):
        bill.wrong("wrong_records", "record", s["cut"], "the cut is not in the file")
    for name, count, root, tree in (("tenant", s["own_count"], s["own_root"], fold.own),
                                    ("common", s["common_count"], s["common_root"], fold.shared)):
        if (tree.size, tree.root()) != (count, root):
            bill.wrong("wrong_count" if tree.size != count else "wrong_root", "records", name,
                       f"the statement has {count} records with the root {root.hex()}, and the file {tree.size} with "
                       f"{tree.root().hex()}", count, tree.size)


def border_lists(bill: Bill, fold: Fold) -> bool:
    same_list(bill, "tenant at border", fold.tenant.encode(), bill.statement.body["own_border"])
    same_list(bill, "common at border", fold.common.encode(), bill.statement.body["common_border"])
    return True


def belongs_after(bill: Bill, r: Sealed) -> bool:
    if r.kind == APPLIED and r.tenant == bill.tenant and r.body["invoice"] == bill.file.number:
        bill.applied.append(r)
        return True
    return r is bill.statement or r.kind == CLOSED_PERIOD and r.body["month"] == bill.month


def check_stamps(bill: Bill) -> None:
    border, start, end = bill.statement.body["border"], month_start(bill.month), month_start(bill.month + 1)
    last = 0
    for r in bill.file.records:
        if r.stamp < last:
            bill.wrong("stamp_goes_back", "record", r.sequence, "its stamp is before that of an earlier record",
                       last, r.stamp)
        if not (start <= r.stamp < end if r.sequence < border else r.stamp >= end):
            bill.wrong("wrong_stamp", "record", r.sequence, "its stamp lies on the wrong side of the border")
        last = max(last, r.stamp)


def check_usage(bill: Bill, fold: Fold, first_month: int) -> None:
    """Rule 6: what was posted for the hours of these months is what was used."""
    window = (month_start(first_month), month_start(bill.month + 1))
    posted = fold.books.posted(range(first_month, bill.month + 1), window)  # later changes go to the next month
    same_usage(bill, fold, fold.usage(window), posted, "used as of the cut")


def check_changes(bill: Bill, fold: Fold) -> None:
    """What was posted in this month for hours of earlier ones is what changed there between the two cuts.

    Leases and claims that were over before the range are not in the lists: where records change their usage, this needs
    the files of earlier months.
    """
    window = (0, month_start(bill.month))
    posted = fold.books.posted([bill.month], window)
    seen_before = any(at < window[1] for at in fold.tenant.last_seen)
    if fold.tenant.unknown_leases or fold.tenant.unknown_claims or seen_before:
        if posted:
            bill.not_proved.append(f"the usage of {len(posted)} lines of earlier months: give the files of those "
                                   "months")
        return
    changed: Usage = defaultdict(int)
    if fold.at_earlier_cut is not None:
        changed.update(fold.usage(window))
        for line, usage in fold.at_earlier_cut.items():
            changed[line] -= usage
    same_usage(bill, fold, changed, posted, "more was used than at the cut before")


def same_usage(bill: Bill, fold: Fold, used: Usage, posted: Usage, what: str) -> None:
    for payer, key in sorted({*used, *posted}):
        expected, found = used.get((payer, key), 0), posted.get((payer, key), 0)
        if expected != found:
            bill.of_currency(payer[1], Wrong(
                "wrong_usage", ("line", f"{payer[0]} {key.hour}"),
                f"project {payer[0]} in {payer[1]}, {key.words()}: {expected} {what}, and {found} was posted, "
                f"{cost_of(key, found - expected, payer, fold.prices)} too much", expected, found))


def cost_of(key: LineKey, usage: int, payer: Payer, prices: Prices) -> str:
    rate = prices.rate(key)
    return "an unknown amount" if rate is None else money(round(rate * usage), payer[1])


def check_bill(bill: Bill, fold: Fold) -> None:
    """Rule 7: the invoice follows from the entries of its month; and what of it was paid in advance."""
    for r in bill.later:
        if r.kind == TAX:
            fold.tenant.fold(r, fold.nodes)
        else:
            fold.entry(r)
    b = bill.invoice.body
    entries = [r for r in fold.books.by_record if r.sequence < bill.invoice.sequence]
    fold.books.check_pools(bill.month, fold.tenant.projects, fold.tenant.instances)
    fold.drain()
    bill.failures += check_invoice(bill.invoice, sums_of(entries, bill.month, b["currency"]), fold.tenant.taxes)
    for r in bill.applied:
        if (r.body["currency"], r.body["month"]) != (b["currency"], bill.month):
            bill.wrong("wrong_prepaid", "record", r.sequence, "it is about another currency or month")
    if bill.applied:
        check_prepaid(bill)
        bill.not_proved.append("how much prepaid credit was left")
    bill.not_proved += fold.books.unchecked


def check_prepaid(bill: Bill) -> None:
    """After each account what is credited is the sum so far, rounded; the nets themselves if all is paid."""
    b, paid, credited = bill.invoice.body, 0, 0
    for r in bill.applied:
        paid, credited = paid + r.body["amount"], credited + r.body["credited"]
        everything = paid == sum(amount for _, amount in b["projects"])
        expected = sum(row[2] for row in b["taxes"]) if everything else to_decimals(paid, b["currency"])
        if expected != credited:
            bill.wrong("wrong_prepaid", "record", r.sequence, "what is credited is not what was paid, rounded",
                       expected, credited)


def check_bill_alone(bill: Bill) -> Fold:
    fold = Fold(bill, *copy.deepcopy(bill.start))
    check_heads(bill)
    check_records(bill, fold)
    check_claimed(bill)
    check_stamps(bill)
    if unknown := {r.kind for r in bill.file.records} - KINDS.keys():
        bill.not_proved.append(f"what records of the unknown kinds {sorted(unknown)} mean")
    check_bill(bill, fold)  # of what comes after the cut it reads entries and tax rates only, so that usage is as of the cut
    check_usage(bill, fold, bill.month)
    check_changes(bill, fold)
    return fold


def check_claimed(bill: Bill) -> None:
    """The list of claimed nodes has those of the claims in the range, and no others."""
    cut = bill.statement.body["cut"]
    claims = {(r.sequence, node) for r in bill.file.records if r.kind == 90 and r.sequence < cut for node in r.body[0]}
    if claims != set(bill.start[2].claimed):
        bill.wrong("wrong_list", "list", "claimed nodes", "it does not have the nodes of the claims in the range",
                   sorted(claims), sorted(bill.start[2].claimed))


def check_chain(bill: Bill, earlier: list[Bill]) -> None:
    """Files of earlier months: one hash for each sequence, and each month begins where the one before it ended."""
    hashes = {r.sequence: r.hash for r in bill.file.records}
    chain = [bill]
    for other in sorted(earlier, key=lambda b: -b.month):
        if other.tenant != bill.tenant:
            bill.wrong("wrong_chain", "file", "earlier", "a file given with it is that of another tenant", bill.tenant,
                       other.tenant)
            return
        for r in other.file.records:
            if hashes.setdefault(r.sequence, r.hash) != r.hash:
                bill.wrong("two_histories", "record", r.sequence, "the files have two records of this sequence")
                return
        if other.month == chain[-1].month - 1:
            chain_month(bill, other, chain[-1])
            chain.append(other)
        elif other.month != chain[-1].month:
            bill.not_proved.append(f"that {month_text(other.month)} and {month_text(chain[-1].month)} belong together: "
                                   "months between them are missing")
    if len(chain) > 1 and not bill.failures:
        check_together(bill, chain[::-1])


def chain_month(bill: Bill, before: Bill, after: Bill) -> None:
    a, b = before.statement.body, after.statement.body
    for what, end, begin in (("the border", "border", "from"), ("the tenant's list", "own_border", "own_start"),
                             ("the common list", "common_border", "common_start")):
        if a[end] != b[begin]:
            bill.wrong("wrong_chain", "months", f"{month_text(before.month)} and {month_text(after.month)}",
                       f"{what} at the end of the first is not that at the beginning of the second")


def check_together(bill: Bill, chain: list[Bill]) -> None:
    """All months in one: also changes of earlier months are what was used less what was posted before."""
    tenant, common, nodes = copy.deepcopy(chain[0].start)
    for other in chain[1:]:
        nodes.claimed |= other.start[2].claimed
        nodes.own_evictions += other.start[2].own_evictions
    scratch = Bill(bill.file, bill.checkpoint, bill.invoice, bill.statement, bill.start)
    fold = Fold(scratch, tenant, common, nodes)
    records = {r.sequence: r for b in chain for r in b.file.records}
    for sequence in sorted(records):
        if sequence < bill.statement.body["cut"]:
            fold.belongs(records[sequence])
        elif sequence <= bill.invoice.sequence:
            fold.entry(records[sequence])
    bill.not_proved = [n for n in bill.not_proved if "of earlier months: give" not in n]
    check_usage(bill, fold, chain[0].month)
    bill.failures += scratch.failures


# ---------------------------------------------------------------- the report

def said(value: Any) -> Any:
    return value if isinstance(value, (int, str, type(None))) else str(value)


def report_of(failures: list[Wrong], bill: Optional[Bill], not_proved: list[str]) -> dict:
    out: dict[str, Any] = {
        "verdict": "no" if failures else "yes",
        "failures": [{"code": e.code, "place": list(e.place), "sentence": e.sentence, "expected": said(e.expected),
                      "found": said(e.found)} for e in failures],
        "not_proved": not_proved}
    if bill is not None:
        b = bill.invoice.body
        paid = sum(r.body["credited"] for r in bill.applied)
        out |= {"invoice": f"{SERIES[b['number'][0]]}-{b['number'][1]:06}", "tenant": bill.tenant,
                "month": month_text(bill.month), "total": money(b["total"], b["currency"]),
                "prepaid": money(paid, b["currency"]), "records": len(bill.file.framed), "size": bill.checkpoint.size}
    return out


def verify_invoice(data: bytes, trust_text: str | bytes, earlier: Iterable[bytes] = ()) -> dict:
    """The whole judgement as one JSON-ready object. UsageError if the trust file cannot be used."""
    trust = v.parse_trust(trust_text.encode() if isinstance(trust_text, str) else trust_text, "given")
    bill: Optional[Bill] = None
    not_proved = list(ALWAYS_NOT_PROVED)
    try:
        bill, pinned = open_file(data, trust)
        if not pinned:
            not_proved.append("that others see the same journal: the file does not lead to a pinned checkpoint")
        check_bill_alone(bill)
        others = []
        for raw in earlier:
            other, _ = open_file(raw, trust)
            check_bill_alone(other)
            bill.failures += other.failures
            others.append(other)
        if others:
            check_chain(bill, others)
    except Wrong as e:
        return report_of((bill.failures if bill else []) + [e], bill, not_proved + (bill.not_proved if bill else []))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as e:
        # Records that decode and make no sense together, such as an entry without a project or a class of no quanta.
        senseless = Wrong("senseless", ("file", "records"), f"the records make no sense together: {type(e).__name__} {e}")
        return report_of((bill.failures if bill else []) + [senseless], bill, not_proved)
    return report_of(bill.failures, bill, not_proved + bill.not_proved)


def main(argv: Optional[list[str]] = None) -> int:
    p = argparse.ArgumentParser(description="Verify the proof file of an invoice (second, independent implementation).")
    p.add_argument("file", type=Path, metavar="FILE")
    p.add_argument("--trust", type=Path, required=True, metavar="TRUST")
    p.add_argument("--with", type=Path, action="append", default=[], dest="earlier", metavar="FILE")
    p.add_argument("--json", action="store_true")
    args = p.parse_args(argv)
    try:
        data, *earlier = [path.read_bytes() for path in (args.file, *args.earlier)]
        report = verify_invoice(data, args.trust.read_bytes(), earlier)
    except (UsageError, OSError) as e:
        print(f"invoice.py: {e}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(report, ensure_ascii=False))
    else:
        print(report["verdict"] + (": {invoice}, {month}, {total}".format(**report) if "invoice" in report else ""))
        for e in report["failures"]:
            print(f"  {e['code']}: {e['sentence']}")
        print("\n".join(["not proved:", *(f"  {n}" for n in report["not_proved"])]))
    return 0 if report["verdict"] == "yes" else 3


if __name__ == "__main__":
    sys.exit(main())
