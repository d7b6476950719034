-- Least writer: 0.1.0
-- Up Migration

-- Token sessions where there is no Redis. Both kinds are alike: only a 'pair' has a refresh token.
create table session (
  id uuid primary key,
  account_id bigint not null references account on delete cascade,
  kind text not null check (kind in ('pair', 'account')),
  created_at timestamptz not null,
  used_at timestamptz not null,
  expires_at timestamptz not null,
  -- SHA-256 of the one refresh token that is still good
  refresh_hash text
) with (fillfactor = 80);
create index session_account on session (account_id);
create index session_expiry on session (expires_at);

-- Down Migration
drop table session;
