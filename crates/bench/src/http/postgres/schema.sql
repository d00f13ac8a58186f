-- A thousand tenants with a limit, a thousand nodes of eight, leases, and events plain or hash-linked.
drop table if exists events, linked_events, leases, nodes, tenants, chain cascade;
create table tenants (id int primary key, quota int not null, used int not null, check (used between 0 and quota)) with (fillfactor = 50);
create table nodes (id int primary key, free int not null, check (free between 0 and 8)) with (fillfactor = 50);
create table leases (
  id bigint generated always as identity (cache 50) primary key,
  tenant int not null, node int not null, size int not null, active bool not null default true,
  granted_at bigint not null, expires_at bigint not null
) with (fillfactor = 80);
create table events (
  id bigint generated always as identity (cache 50) primary key,
  at bigint not null, lease bigint not null, tenant int not null, node int not null, kind smallint not null, size int not null
);
create table linked_events (
  id bigint primary key,
  at bigint not null, lease bigint not null, tenant int not null, node int not null, kind smallint not null, size int not null,
  previous bytea not null, hash bytea not null
);
create table chain (only_row bool primary key default true check (only_row), id bigint not null, hash bytea not null) with (fillfactor = 10);
insert into chain values (true, 0, decode(repeat('00', 32), 'hex'));
insert into tenants select n, 64, 0 from generate_series(1, 1000) n;
insert into nodes select n, 8 from generate_series(1, 1000) n;

create or replace function micros() returns bigint language sql as $$ select (extract(epoch from clock_timestamp()) * 1000000)::bigint $$;

create or replace function record_event(linked bool, l bigint, t int, n int, k smallint, s int) returns void language plpgsql as $$
declare now_us bigint := micros(); next_id bigint; before bytea; own bytea;
begin
  if not linked then
    insert into events (at, lease, tenant, node, kind, size) values (now_us, l, t, n, k, s);
    return;
  end if;
  -- The one row of the chain is locked until the transaction ends: that is what linking costs here.
  select id + 1, hash into next_id, before from chain where only_row for update;
  own := sha256(before || int8send(next_id) || int8send(now_us) || int8send(l) || int4send(t) || int4send(n) || int2send(k) || int4send(s));
  insert into linked_events values (next_id, now_us, l, t, n, k, s, before, own);
  update chain set id = next_id, hash = own where only_row;
end $$;

create or replace function lease_request(linked bool, t int, n int, s int) returns bigint language plpgsql as $$
declare l bigint; now_us bigint := micros();
begin
  update tenants set used = used + s where id = t and used + s <= quota;
  if not found then return 0; end if;
  update nodes set free = free - s where id = n and free >= s;
  if not found then
    update tenants set used = used - s where id = t;
    return 0;
  end if;
  insert into leases (tenant, node, size, granted_at, expires_at) values (t, n, s, now_us, now_us + 3600000000) returning id into l;
  perform record_event(linked, l, t, n, 1::smallint, s);
  return l;
end $$;

create or replace function lease_renew(linked bool, l bigint) returns bigint language plpgsql as $$
declare held leases;
begin
  update leases set expires_at = micros() + 3600000000 where id = l and active returning * into held;
  if not found then return 0; end if;
  perform record_event(linked, l, held.tenant, held.node, 2::smallint, held.size);
  return l;
end $$;

create or replace function lease_release(linked bool, l bigint) returns bigint language plpgsql as $$
declare held leases;
begin
  update leases set active = false, expires_at = micros() where id = l and active returning * into held;
  if not found then return 0; end if;
  update tenants set used = used - held.size where id = held.tenant;
  update nodes set free = free + held.size where id = held.node;
  perform record_event(linked, l, held.tenant, held.node, 3::smallint, held.size);
  return l;
end $$;

create or replace function lease_batch(linked bool, operations int, start int) returns int language plpgsql as $$
declare done int := 0; l bigint; x int := start;
begin
  while done < operations loop
    x := (x * 1103 + 12345) % 1000;
    l := lease_request(linked, 1 + x, 1 + ((x * 7 + done) % 1000), 1 + done % 2);
    done := done + 1;
    continue when l = 0;
    perform lease_renew(linked, l);
    perform lease_release(linked, l);
    done := done + 2;
  end loop;
  return done;
end $$;

-- The standing load: a quarter of the cluster.
do $$ begin for n in 1..2000 loop perform lease_request(false, 1 + n % 1000, 1 + (n * 7) % 1000, 1); end loop; end $$;
vacuum analyze;
checkpoint;
