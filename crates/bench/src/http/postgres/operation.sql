\if :phase = 0
\set tenant random(1, 1000)
\set node random(1, 1000)
\set size random(1, 2)
select lease_request(:linked = 1, :tenant, :node, :size) as lease \gset
\if :lease > 0
\set phase 1
\endif
\elif :phase = 1
select lease_renew(:linked = 1, :lease);
\set phase 2
\else
select lease_release(:linked = 1, :lease);
\set phase 0
\endif
