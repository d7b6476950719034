-- Least writer: 0.2.0
-- Up Migration

-- What a program shows instead of an account's password. The key itself is nowhere: only its hash.
create table api_key (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  hash bytea not null unique,
  name text not null,
  scopes text[] not null,
  -- Confines it to devices that have one of these; empty: to none.
  labels text[] not null default '{}',
  created_at timestamptz not null,
  expires_at timestamptz,
  -- To the minute.
  used_at timestamptz
) with (fillfactor = 90);
create index api_key_account on api_key (account_id, id);

-- Down Migration
drop table api_key;
