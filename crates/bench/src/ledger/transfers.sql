-- Accounts with balances, and transfers between two of them with what our lines have: what each project owes, and the
-- revenue of each class.
drop table if exists transfers, accounts cascade;
create table accounts (id int primary key, balance bigint not null) with (fillfactor = 50);
create table transfers (
  id bigint generated always as identity (cache 1000) primary key,
  at bigint not null, hour bigint not null, debit int not null, credit int not null, class smallint not null,
  priority smallint not null, usage numeric not null, amount bigint not null
);
insert into accounts select n, 0 from generate_series(1, :projects + :classes) n;

-- One entry: the payer is debited, the revenue of the class credited.
create or replace function post(debit_id int, credit_id int, of_class smallint, of_priority smallint, used numeric, steps bigint)
returns void language plpgsql as $$
begin
  insert into transfers (at, hour, debit, credit, class, priority, usage, amount)
  values ((extract(epoch from clock_timestamp()) * 1000000)::bigint, 1767225600, debit_id, credit_id, of_class, of_priority, used, steps);
  update accounts set balance = balance + steps where id = debit_id;
  update accounts set balance = balance - steps where id = credit_id;
end $$;

create or replace function transfer(n int) returns void language sql as $$
  select post(1 + n % :projects, :projects + 1 + n / 7 % :classes, (n / 7 % :classes)::smallint, (n % 2)::smallint, n::numeric * 3600000000000, n::bigint)
$$;

create or replace function transfer_batch(n int, transfers int) returns void language plpgsql as $$
declare i int;
begin
  for i in 1..transfers loop
    perform transfer(n % 1000000 + i * 101);
  end loop;
end $$;

-- The same without a call for each: one insert, and one update of each account.
create or replace function transfer_set(n int, transfers int) returns void language sql as $$
  with wanted as (
    select 1 + x % :projects as debit, :projects + 1 + x / 7 % :classes as credit, x
    from (select n % 1000000 + i * 101 as x from generate_series(1, transfers) i) drawn
  ), booked as (
    insert into transfers (at, hour, debit, credit, class, priority, usage, amount)
    select (extract(epoch from clock_timestamp()) * 1000000)::bigint, 1767225600, debit, credit,
      (x / 7 % :classes)::smallint, (x % 2)::smallint, x::numeric * 3600000000000, x
    from wanted
  ), changes as (
    select account, sum(amount)::bigint as amount from (
      select debit as account, x::bigint as amount from wanted union all select credit, -x::bigint from wanted
    ) legs group by account
  )
  update accounts set balance = balance + changes.amount from changes where accounts.id = changes.account
$$;
vacuum analyze;
checkpoint;
