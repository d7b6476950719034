-- Access to an account: sessions, API keys, stream tickets; and the keys that keep a repeated request from running
-- twice.

-- One row per session of a person, if there is no Redis. A login inserts it, and each use updates `used_at`.
create table session (
  id uuid primary key,
  account_id bigint not null references account on delete cascade,
  -- pair: of /v1, with a refresh token; account: of /v2 and of the console
  kind text not null check (kind in ('pair', 'account')),
  created_at timestamptz not null,
  used_at timestamptz not null,
  expires_at timestamptz not null,
  -- SHA-256 of the one valid refresh token, and of the previous one.
  refresh_hash text,
  previous_hash text,
  rotated_at timestamptz,
  -- The next pair of tokens, encrypted under a key derived from the previous token. A client that lost the answer to
  -- its refresh asks again and gets the same pair.
  successor text
) with (fillfactor = 80);
create index session_account on session (account_id);
create index session_expiry on session (expires_at);

-- One row per API key, which a program uses instead of a password. Only its hash is stored.
create table api_key (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  hash bytea not null unique,
  name text not null,
  scopes text[] not null,
  -- Restricts the key to devices that have one of these labels; empty: no restriction.
  labels text[] not null default '{}',
  created_at timestamptz not null,
  expires_at timestamptz,
  -- To the minute.
  used_at timestamptz
) with (fillfactor = 90);
create index api_key_account on api_key (account_id, id);

-- One row per ticket that opens a stream without a header (EventSource cannot send one). Only its hash is stored.
create table stream_ticket (
  hash bytea primary key,
  account_id bigint not null references account on delete cascade,
  -- The session or API key that created the ticket. The ticket ends with it.
  holder_id uuid not null,
  is_of_key boolean not null,
  -- Which stream the ticket opens, and with which filters.
  asked json not null,
  -- How often it was opened. Only the stream that opened it last continues.
  opened integer not null default 0,
  -- Extended while a stream is open.
  expires_at timestamptz not null
) with (fillfactor = 80);
create index stream_ticket_account on stream_ticket (account_id, expires_at);

-- One row per request with an Idempotency-Key, with what it created. A repetition gets the same answer and creates
-- nothing.
create table idempotency_key (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  -- The API key that sent the request; all zeros: a session. The sessions of an account share their keys.
  owner uuid not null,
  -- SHA-256 of the key, and of the request with its body.
  hash bytea not null,
  request bytea not null,
  begun_at timestamptz not null,
  -- Incremented when another request takes over from one that died. Only the latest attempt may commit.
  attempt integer not null default 1,
  -- The last sign of life of the process that works on it.
  alive_at timestamptz not null,
  -- What the request created, encrypted; written in the transaction that created it. Null: nothing yet.
  made text,
  -- The answer, encrypted. Null: not written yet; empty: too long to store.
  answer text,
  -- The size of `made` and `answer`.
  bytes integer not null default 0,
  unique (account_id, owner, hash)
);
create index idempotency_key_account on idempotency_key (account_id, id);
create index idempotency_key_age on idempotency_key (begun_at);

-- One row per secret from which tokens are made: one, or two while it is being changed. At its start, a process
-- compares its configured secret with these. The secret cannot be computed from its check value.
create table secret_check (
  value text primary key,
  -- 1 is the newest. Not ordered by time, because clocks differ and two may be recorded at once.
  place integer not null,
  noted_at timestamptz not null default now()
);
