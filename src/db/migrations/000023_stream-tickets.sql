-- Least writer: 0.2.0
-- Up Migration

-- What opens a stream without a header. The ticket itself is nowhere: only its hash.
create table stream_ticket (
  hash bytea primary key,
  account_id bigint not null references account on delete cascade,
  -- The session or the key that made it, and dies with it.
  holder_id uuid not null,
  is_of_key boolean not null,
  asked json not null,
  -- How often it was opened: only the last opening goes on.
  opened integer not null default 0,
  -- Until then it opens. Renewed while it is open.
  expires_at timestamptz not null
) with (fillfactor = 80);
create index stream_ticket_account on stream_ticket (account_id, expires_at);

-- Down Migration
drop table stream_ticket;
