-- Least writer: 0.2.0
-- Up Migration

-- Since when the operator has shut the account out: no session, no device, no message to people.
alter table account add column disabled_at timestamptz;
-- Every process asks for them twice a second.
create index account_disabled on account (id) where disabled_at is not null;

-- What happened to an account's security, for its owner to read. It goes with the account.
create table account_audit (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  ts timestamptz not null,
  kind text collate "C" not null,
  -- session, device, operator, service, nobody
  actor text not null,
  session_id uuid,
  -- The client's. Empty: one of too many for one hour.
  address text collate "C",
  details json,
  -- What a stranger can cause is one row an hour and address: how often, and when last.
  hour timestamptz,
  count integer not null default 1,
  last_at timestamptz
) with (fillfactor = 90);
create index account_audit_newest on account_audit (account_id, kind, ts desc, id desc);
create unique index account_audit_hour on account_audit (account_id, kind, hour, address)
 where hour is not null;
-- Rows come in the order of their time, so that this costs an insert nothing.
create index account_audit_age on account_audit using brin (ts);

-- The newest 2,000 of a kind are kept, whoever writes: what one kind has many of pushes out nothing of
-- another. Looked at now and then, as it costs more than the insert.
create function prune_account_audit() returns trigger language plpgsql as $$
begin
  delete from account_audit
   where id = any(array(
     select a.id
       from account_audit a
      where a.id = any(array(
        select id
          from account_audit
         where account_id = new.account_id and kind = new.kind
         order by ts desc, id desc
        offset 2000
         limit 1000))
        for update skip locked));
  return null;
end $$;
create trigger prune_account_audit after insert on account_audit
  for each row when (new.id % 64 = 0) execute function prune_account_audit();

-- Down Migration
drop table account_audit;
drop function prune_account_audit;
alter table account drop column disabled_at;
