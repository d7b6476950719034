-- Connectors: when devices could be heard, and how bridges to other brokers stand.

-- A row a connector: when it last listened to its devices. The processes that run it write it every few seconds; bridges
-- that share a broker's messages are one. No row: it never did.
create table listening (
  connector_id integer primary key,
  heard_at timestamptz not null
);

-- A row a stretch of time in which a connector did not listen: silence of a device means nothing then.
create table listening_gap (
  connector_id integer not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  primary key (connector_id, from_at)
);
create index listening_gap_end on listening_gap (to_at);

-- A row a bridge to a broker, in one run of a process, which writes it every few seconds. A row that is not refreshed is of
-- a process that died: readers ignore it, writers delete it.
create table bridge_status (
  connector_id integer not null,
  run_uuid uuid not null,
  connector_name text not null,
  -- The machine and the process there, for people.
  process text not null,
  connected boolean not null,
  since timestamptz not null,
  -- Why it is not connected.
  reason text,
  -- Where one bridge at a time may connect: whether it is this one.
  lease_held boolean,
  -- When messages last came and went.
  last_in timestamptz,
  last_out timestamptz,
  refused bigint not null,
  refreshed timestamptz not null,
  primary key (connector_id, run_uuid)
);
