"""A Python client, generated from the OpenAPI document by openapi-python-client, against a real daemon.

The generator must understand every endpoint, and the generated client must read every answer of a lease's life: it
fails on an answer that is not as the document says.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from real_daemon import Daemon  # noqa: E402
# The generator knows no lines of JSON; as text they are what they are.
SETTINGS = """
package_name_override: generated
post_hooks: []
content_type_overrides:
  application/x-ndjson: text/plain
"""


def generate(program: str, document: dict, folder: pathlib.Path) -> None:
    """Writes the package `generated` into the folder. A warning is a failure: it means a part that is left out."""
    path = folder / "openapi.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    settings = folder / "settings.yaml"
    settings.write_text(SETTINGS, encoding="utf-8")
    arguments = [program, "generate", "--path", path, "--config", settings, "--meta", "none", "--fail-on-warning"]
    subprocess.run([*arguments, "--output-path", folder / "generated"], check=True)


def use(daemon: Daemon) -> None:
    """The life of a lease and of an allocation, by the generated client."""
    from generated import AuthenticatedClient
    from generated import models as m
    from generated.api.about import about
    from generated.api.allocations import cancel_allocation, show_allocation, submit_allocation
    from generated.api.audit import list_records
    from generated.api.leases import lease_history, list_leases, release_lease, renew_lease, request_lease, show_lease
    from generated.api.nodes import create_node, list_nodes
    from generated.api.quotas import list_quotas
    from generated.api.tenants import update_tenant

    client = AuthenticatedClient(daemon.url, daemon.token, raise_on_unexpected_status=True)
    assert about.sync(client=client).size > 0

    new = m.NewNode.from_dict({"name": "n9", "pool": "main", "capacity": {"h100": 8}})
    assert create_node.sync(client=client, body=new).node.name == "n9"
    assert [node.name for node in list_nodes.sync(client=client).nodes] == ["n0", "n1", "n2", "n9"]
    assert [quota.tenant for quota in list_quotas.sync(client=client).quotas] == ["physics", "chemistry"]

    def ask(tenant: str, gpus: int) -> m.RequestLease:
        asks = [{"class": "h100", "quantity": gpus}]
        return m.RequestLease.from_dict({"tenant": tenant, "project": "main", "asks": asks, "ttl": "1h"})

    granted = request_lease.sync(client=client, body=ask("physics", 8))
    assert isinstance(granted, m.Granted), granted
    lease = granted.leases[0].id
    assert lease.startswith("lease-") and len(granted.leases[0].uid) == 32, granted
    renewed = renew_lease.sync(lease, client=client, body=m.Renew(ttl="2h"))
    assert renewed.expires_at > granted.expires_at
    assert show_lease.sync(granted.leases[0].uid, client=client).state == m.LeaseState.ACTIVE
    assert lease in [one.id for one in list_leases.sync(client=client, tenant="physics").leases]

    # A refusal is an answer, too: its code, and the three numbers with their unit.
    refused = request_lease.sync(client=client, body=ask("physics", 8))
    assert isinstance(refused, m.Problem) and refused.code == m.ProblemCode.QUOTA_EXCEEDED, refused
    numbers = (refused.used, refused.requested, refused.limit, refused.unit)
    assert numbers == ("12", "8", "16", "GPU"), refused

    released = release_lease.sync(lease, client=client, body=m.Release())
    assert isinstance(released, m.Released), released
    assert len(lease_history.sync(lease, client=client).records) == 3

    # A partial change: what is absent keeps its value.
    changed = update_tenant.sync("physics", client=client, body=m.TenantChange(accounting_tag="cc-1"))
    assert (changed.tenant.name, changed.tenant.accounting_tag) == ("physics", "cc-1"), changed

    job = {"tenant": "chemistry", "project": "main", "asks": [{"class": "h100", "quantity": 8}], "walltime": "1h"}
    submitted = submit_allocation.sync(client=client, body=m.SubmitAllocation.from_dict(job))
    assert submitted.id.startswith("alloc-"), submitted
    assert show_allocation.sync(submitted.id, client=client).id == submitted.id
    assert cancel_allocation.sync(submitted.id, client=client).state == m.AllocationState.CANCELLED

    # Every record so far has the type of its kind.
    page = list_records.sync(client=client, limit=1000)
    assert len(page.records) == page.size, page
    grants = [record for record in page.records if isinstance(record, m.LeaseGrantedRecord)]
    assert [record.timestamp for record in grants if record.body.first_lease == lease] == [granted.granted_at]
    jobs = [record for record in page.records if isinstance(record, m.AllocationSubmittedRecord)]
    assert [record.body.allocation_id for record in jobs] == [submitted.id], jobs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generator", required=True, help="openapi-python-client, as pip installed it")
    parser.add_argument("--leasehold", default=ROOT / "target/debug/leasehold", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        daemon = Daemon(arguments.leasehold, folder)
        try:
            daemon.furnish()
            generate(arguments.generator, daemon.document(), folder)
            sys.path.insert(0, str(folder))
            use(daemon)
        finally:
            ended = daemon.stop()
        print("the generated client understood every answer")
        return ended


if __name__ == "__main__":
    sys.exit(main())
