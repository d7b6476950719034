-- Least writer: 0.2.0
-- Up Migration

-- What confines contacts to some devices of an account.
alter table device add column labels text[] not null default '{}';

-- How messages of an account are written; null: UTC, English.
alter table account add column time_zone text, add column language text;

-- E-mail addresses and webhooks that an account is told by. Its row is the turn of the recipient: whoever
-- delivers to it keeps it busy until then, also where that process ends meanwhile.
create table contact (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  kind text not null check (kind in ('email', 'webhook')),
  -- As it was given; what it is found by is beside it.
  address text not null,
  address_normal text collate "C" not null,
  place integer not null,
  labels text[] not null default '{}',
  after_ms bigint not null default 0,
  when_over boolean not null default false,
  -- E-mail only: a webhook needs no confirmation.
  confirmed_at timestamptz,
  unsubscribed_at timestamptz,
  created_at timestamptz not null default now(),
  busy_until timestamptz,
  served_at timestamptz,
  -- How many deliveries failed one after the other, and until when none is tried.
  failures integer not null default 0,
  rests_until timestamptz,
  -- How the last delivery ended.
  last_at timestamptz,
  last_state text,
  last_reason text,
  unique (account_id, kind, address_normal)
) with (fillfactor = 70);

-- A message to a contact belongs to no device where it is a trial or asks for confirmation. Programs that
-- know no contacts neither read these rows nor make jobs for them.
alter table notification
  alter column device_id drop not null,
  add column contact_id bigint,
  add column type text not null default 'notice' check (type in ('notice', 'confirm', 'test')),
  -- What a webhook is sent beside the text.
  add column data json,
  add column due_at timestamptz,
  drop constraint notification_kind_check,
  add constraint notification_kind_check check (kind in ('push', 'sms', 'email', 'webhook')),
  drop constraint notification_state_check,
  add constraint notification_state_check
    check (state in ('queued', 'sent', 'logged', 'failed', 'held-back'));
alter table notification alter column engine drop not null;
create index notification_due on notification (contact_id, due_at, id)
 where state = 'queued' and contact_id is not null;

-- The channels of each process that delivers, renewed as long as it lives.
create table delivering_process (
  process uuid primary key,
  channels text[] not null,
  seen_at timestamptz not null
);

-- Down Migration
drop table delivering_process;
drop index notification_due;
delete from notification where contact_id is not null or device_id is null;
update notification set state = 'sent' where state = 'logged';
alter table notification
  alter column engine set not null,
  drop constraint notification_state_check,
  add constraint notification_state_check
    check (state in ('queued', 'sent', 'failed', 'held-back')),
  drop constraint notification_kind_check,
  add constraint notification_kind_check check (kind in ('push', 'sms')),
  drop column due_at, drop column data, drop column type, drop column contact_id,
  alter column device_id set not null;
drop table contact;
alter table account drop column time_zone, drop column language;
alter table device drop column labels;
