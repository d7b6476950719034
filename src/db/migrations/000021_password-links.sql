-- Least writer: 0.2.0
-- Up Migration

-- Mails to accounts themselves: links to set a password or to confirm a new address, and what is told of
-- both. Rows are kept for an hour or two: they are what mails to one address are counted by.
create table account_mail (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('reset', 'confirm-email', 'password-reset', 'email-changed')),
  -- Null where a stranger asked: whether there is such an account is found out when it is sent.
  account_id bigint references account on delete cascade,
  recipient text not null,
  recipient_normal text collate "C" not null,
  -- The client's address, of what was asked for.
  address text,
  created_at timestamptz not null,
  due_at timestamptz not null,
  busy_until timestamptz,
  attempts integer not null default 0,
  -- When it was sent, given up, or found to be for nobody.
  done_at timestamptz
) with (fillfactor = 70);
create index account_mail_recipient on account_mail (recipient_normal, created_at);
create index account_mail_account on account_mail (account_id, created_at);
create index account_mail_due on account_mail (due_at) where done_at is null;

-- The address that an account is to have once it is confirmed by the link that was sent there.
create table email_change (
  account_id bigint primary key references account on delete cascade,
  uuid uuid not null unique default gen_random_uuid(),
  email text not null,
  expires_at timestamptz not null
);

-- Down Migration
drop table email_change;
drop table account_mail;
