-- Least writer: 0.1.0
-- Up Migration

-- How each bridge to a broker stands, as the process that runs it says every few seconds. A row that
-- is not refreshed is of a process that died: readers take no notice of it, writers remove it.
create table bridge_status (
  connector_id integer not null,
  -- One run of a process.
  run_uuid uuid not null,
  connector_name text not null,
  -- The machine and the process there, for people.
  process text not null,
  connected boolean not null,
  since timestamptz not null,
  -- Why it is not connected.
  reason text,
  -- Where one bridge at a time is connected: whether it is this one's turn.
  lease_held boolean,
  last_in timestamptz,
  last_out timestamptz,
  refused bigint not null,
  refreshed timestamptz not null,
  primary key (connector_id, run_uuid)
);

-- Down Migration

drop table bridge_status;
