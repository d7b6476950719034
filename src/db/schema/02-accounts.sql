-- Accounts: who they are, how to reach them, and what happened to them.

-- One row per account. Registration inserts it, the account's owner changes it, the operator disables it.
create table account (
  id bigint generated always as identity primary key,
  -- Identifies the account outside the database.
  uuid uuid not null unique default gen_random_uuid(),
  -- As typed at registration.
  email text not null,
  -- The lower-case address by which a login finds the account. If two addresses differ only under the database's
  -- locale, one has the normal form and the others have `email` unchanged. Null: something other than the program wrote
  -- the row, and nobody can log in to it.
  email_normal text,
  password_hash text not null,
  name text,
  -- Push tokens that Update Account replaces as a whole. Those that sessions add are in `push_token`.
  apn jsonb not null default '[]',
  -- Time zone and language of messages to this account; null: UTC, English.
  time_zone text,
  language text,
  -- The operator allows SMS for this account.
  may_send_sms boolean not null default false,
  created_at timestamptz not null default now(),
  -- Since when the operator has disabled the account: no session, no device, no message to people.
  disabled_at timestamptz,
  -- Since when the account is removed. The row no longer names anybody, and stays until everything that belonged to it
  -- is deleted. `disabled_at` is set too, for versions before 0.4.0, which do not know this column.
  removed_at timestamptz
);
create unique index account_email_normal on account (email_normal);
-- Every process looks up the disabled ones twice a second.
create index account_disabled on account (id) where disabled_at is not null;
-- Every batch of ingest checks whether one of its accounts is removed; that is rare.
create index account_removed on account (id) where removed_at is not null;

-- One row per account that is changing its address, until the new address is confirmed.
create table email_change (
  account_id bigint primary key references account on delete cascade,
  uuid uuid not null unique default gen_random_uuid(),
  -- The new address, to which the link was sent.
  email text not null,
  expires_at timestamptz not null
);

-- One row per mail to an account's owner about the account itself: links that set a password or confirm an address, and
-- notices that this was done. Kept for an hour or two, because the rows limit the mails to one address.
create table account_mail (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('reset', 'confirm-email', 'password-reset', 'email-changed')),
  -- Null if a stranger asked: whether there is such an account is looked up only when the mail is sent.
  account_id bigint references account on delete cascade,
  recipient text not null,
  -- Limits count mails by this.
  recipient_normal text collate "C" not null,
  -- The IP address that asked for the mail.
  address text,
  created_at timestamptz not null,
  due_at timestamptz not null,
  -- Until then one process is sending it, and the others leave it alone.
  busy_until timestamptz,
  attempts integer not null default 0,
  -- When it was sent, given up, or found to have no recipient.
  done_at timestamptz
) with (fillfactor = 70);
create index account_mail_recipient on account_mail (recipient_normal, created_at);
create index account_mail_account on account_mail (account_id, created_at);
create index account_mail_due on account_mail (due_at) where done_at is null;

-- One row per event of an account, for its owner to read (GET /v2/accounts/events).
create table account_event (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  ts timestamptz not null default now(),
  event text not null
);
create index account_event_newest on account_event (account_id, ts desc, id desc);

-- One row per event that concerns an account's security, for its owner to read: a login, a new key, a refused attempt.
-- Events that a stranger can cause share one row per hour and address. Deleted with the account.
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
  -- For rows that count: their hour, the number of occurrences in it, and the time of the last one.
  hour timestamptz,
  count integer not null default 1,
  last_at timestamptz
) with (fillfactor = 90);
create index account_audit_newest on account_audit (account_id, kind, ts desc, id desc);
create unique index account_audit_hour on account_audit (account_id, kind, hour, address)
 where hour is not null;
-- Rows arrive in the order of their time, so this index costs inserts nothing.
create index account_audit_age on account_audit using brin (ts);

-- Keeps the newest 2,000 of each kind, so many rows of one kind do not displace others. It costs more than the insert,
-- so it runs on one insert in 64.
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
