-- Least writer: 0.2.0
-- Up Migration

-- Push tokens that sessions added one by one. Those that Update Account replaces as a whole stay in account.apn, where
-- earlier versions write them. Sessions may be in Redis: no foreign key leads to them.
create table push_token (
  account_id bigint not null references account on delete cascade,
  token text not null,
  session_id uuid not null,
  -- What the app calls itself.
  name text,
  added_at timestamptz not null,
  primary key (account_id, token)
);
create index push_token_session on push_token (session_id);

-- Down Migration
drop table push_token;
