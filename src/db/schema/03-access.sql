-- What opens an account: sessions, API keys, stream tickets; and what keeps a repeated request from running twice.

-- A row a session of a person, where there is no Redis. A login writes it, each use moves `used_at` on.
create table session (
  id uuid primary key,
  account_id bigint not null references account on delete cascade,
  -- pair: of /v1, with a refresh token; account: of /v2 and of the console
  kind text not null check (kind in ('pair', 'account')),
  created_at timestamptz not null,
  used_at timestamptz not null,
  expires_at timestamptz not null,
  -- SHA-256 of the one refresh token that is good, and of the one before it.
  refresh_hash text,
  previous_hash text,
  rotated_at timestamptz,
  -- The pair that followed, sealed under a key made of the token before it: a client that lost the answer to its
  -- refresh asks again and gets the same.
  successor text
) with (fillfactor = 80);
create index session_account on session (account_id);
create index session_expiry on session (expires_at);

-- A row an API key, which a program shows instead of a password. Only its hash is stored.
create table api_key (
  id bigint generated always as identity primary key,
  uuid uuid not null unique default gen_random_uuid(),
  account_id bigint not null references account on delete cascade,
  hash bytea not null unique,
  name text not null,
  scopes text[] not null,
  -- Confines it to devices that have one of these; empty: to none of them.
  labels text[] not null default '{}',
  created_at timestamptz not null,
  expires_at timestamptz,
  -- To the minute.
  used_at timestamptz
) with (fillfactor = 90);
create index api_key_account on api_key (account_id, id);

-- A row a ticket that opens a stream without a header (EventSource has none). Only its hash is stored.
create table stream_ticket (
  hash bytea primary key,
  account_id bigint not null references account on delete cascade,
  -- The session or the API key that made the ticket; it ends with it.
  holder_id uuid not null,
  is_of_key boolean not null,
  -- Which stream it opens, and with which filters.
  asked json not null,
  -- How often it was opened: only the stream of the last opening goes on.
  opened integer not null default 0,
  -- Renewed while a stream is open.
  expires_at timestamptz not null
) with (fillfactor = 80);
create index stream_ticket_account on stream_ticket (account_id, expires_at);

-- A row a request with an Idempotency-Key, with what it made: a repetition is answered alike and makes nothing.
create table idempotency_key (
  id bigint generated always as identity primary key,
  account_id bigint not null references account on delete cascade,
  -- The API key that sent the request; all zeros: a session. The sessions of an account share their keys.
  owner uuid not null,
  -- SHA-256 of the key, and of the request with its body.
  hash bytea not null,
  request bytea not null,
  begun_at timestamptz not null,
  -- Raised when another request takes over from one that died: only the latest attempt may commit.
  attempt integer not null default 1,
  -- When the process that works on it last said so.
  alive_at timestamptz not null,
  -- What the request made, encrypted; written by the transaction that made it. Null: nothing yet.
  made text,
  -- The answer, encrypted. Null: not written yet; empty: too long to be kept.
  answer text,
  -- Of `made` and `answer`.
  bytes integer not null default 0,
  unique (account_id, owner, hash)
);
create index idempotency_key_account on idempotency_key (account_id, id);
create index idempotency_key_age on idempotency_key (begun_at);

-- A row a secret that tokens here are made with: one, or two while it is being changed. A process compares the secret
-- that it was given with these at its start. The secret cannot be computed from its check value.
create table secret_check (
  value text primary key,
  -- 1 is the newest. Not told by time: clocks differ, and two may be noted at once.
  place integer not null,
  noted_at timestamptz not null default now()
);
