-- Least writer: 0.2.0
-- Up Migration

-- What requests with an Idempotency-Key made, so that a repetition makes nothing again.
create table idempotency_key (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  -- The API key that sent it; all zeros: a session. The sessions of an account share their keys.
  owner uuid not null,
  -- SHA-256: of the key, and of the request with its body.
  hash bytea not null,
  request bytea not null,
  begun_at timestamptz not null,
  -- Raised when another request takes over from one that died: only the latest attempt may commit.
  attempt integer not null default 1,
  -- When the process that is making it, or has yet to write the answer, said so last.
  alive_at timestamptz not null,
  -- Encrypted. Written by the transaction that makes it; null: nothing is made yet.
  made text,
  -- The answer, encrypted; null until it is written, empty where it is too long.
  answer text,
  bytes integer not null default 0,
  unique (account_id, owner, hash)
);
create index idempotency_key_account on idempotency_key (account_id, id);
create index idempotency_key_age on idempotency_key (begun_at);

-- Down Migration
drop table idempotency_key;
