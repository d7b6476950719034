-- Accounts: who they are, how they are reached, and what happened to them.

-- A row an account. Registration writes it, the account's owner changes it, the operator disables it.
create table account (
  id bigint generated always as identity primary key,
  -- Names the account outside the database.
  uuid uuid not null unique default gen_random_uuid(),
  -- As it was typed at registration.
  email text not null,
  -- What a login is looked up by: in lower case. Two addresses that only the database's locale tells apart: one has the
  -- normal form, the others have `email` as it is. Null: something else than the program wrote the row, and nobody
  -- can log in to it.
  email_normal text,
  password_hash text not null,
  name text,
  -- Push tokens that Update Account replaces as a whole; those that sessions add are in `push_token`.
  apn jsonb not null default '[]',
  -- How messages of this account are written; null: UTC, English.
  time_zone text,
  language text,
  -- The operator allows SMS for this account.
  may_send_sms boolean not null default false,
  created_at timestamptz not null default now(),
  -- Since when the operator has shut the account out: no session, no device, no message to people.
  disabled_at timestamptz,
  -- Since when it is removed: the row names nobody any more, and stays until all that belonged to it is deleted.
  -- `disabled_at` is set too, for versions before 0.4.0, which do not know this column.
  removed_at timestamptz
);
create unique index account_email_normal on account (email_normal);
-- Every process asks for the disabled ones twice a second.
create index account_disabled on account (id) where disabled_at is not null;
-- Every batch of ingest asks whether one of its accounts is removed; hardly ever one is.
create index account_removed on account (id) where removed_at is not null;

-- A row an account that is about to change its address. It goes when the new address is confirmed.
create table email_change (
  account_id bigint primary key references account on delete cascade,
  uuid uuid not null unique default gen_random_uuid(),
  -- The address that was sent the link, and that the account is to have.
  email text not null,
  expires_at timestamptz not null
);

-- A row a mail to an account's owner about the account itself: links that set a password or confirm an address, and
-- notices that this was done. Kept for an hour or two: mails to one address are counted by these rows.
create table account_mail (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('reset', 'confirm-email', 'password-reset', 'email-changed')),
  -- Null where a stranger asked: whether there is such an account is found out when it is sent.
  account_id bigint references account on delete cascade,
  recipient text not null,
  -- Mails are counted by it.
  recipient_normal text collate "C" not null,
  -- The IP address that asked for the mail.
  address text,
  created_at timestamptz not null,
  due_at timestamptz not null,
  -- Until then one process sends it; the others leave it alone.
  busy_until timestamptz,
  attempts integer not null default 0,
  -- When it was sent, given up, or found to be for nobody.
  done_at timestamptz
) with (fillfactor = 70);
create index account_mail_recipient on account_mail (recipient_normal, created_at);
create index account_mail_account on account_mail (account_id, created_at);
create index account_mail_due on account_mail (due_at) where done_at is null;

-- A row a thing that happened to an account, for its owner to read (GET /v2/accounts/events).
create table account_event (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  ts timestamptz not null default now(),
  event text not null
);
create index account_event_newest on account_event (account_id, ts desc, id desc);

-- A row a thing that concerns an account's security, for its owner to read: a login, a new key, a refused attempt. What
-- a stranger can cause is one row an hour and address. It goes with the account.
create table account_audit (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  ts timestamptz not null,
  kind text collate "C" not null,
  -- session, device, operator, service or nobody
  actor text not null,
  session_id uuid,
  -- The client's IP address. Empty: too many addresses within one hour to keep each.
  address text collate "C",
  details json,
  -- Of rows that are counted up: their hour, how often it happened in it, and when last.
  hour timestamptz,
  count integer not null default 1,
  last_at timestamptz
) with (fillfactor = 90);
create index account_audit_newest on account_audit (account_id, kind, ts desc, id desc);
create unique index account_audit_hour on account_audit (account_id, kind, hour, address)
 where hour is not null;
-- Rows come in the order of their time, so that this costs an insert nothing.
create index account_audit_age on account_audit using brin (ts);

-- The newest 2,000 of a kind are kept: many rows of one kind push out none of another. It costs more than the insert,
-- so it runs at one insert in 64.
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
