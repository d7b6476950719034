-- Connectors: when they could hear devices, and the state of bridges to other brokers.

-- One row per connector: when it last listened to its devices. The processes that run it update it every few seconds.
-- Bridges that share a broker's messages count as one connector. No row: it never listened.
create table listening (
  connector_id integer primary key,
  heard_at timestamptz not null
);

-- One row per period in which a connector did not listen: the silence of a device then means nothing.
create table listening_gap (
  connector_id integer not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  primary key (connector_id, from_at)
);
create index listening_gap_end on listening_gap (to_at);

-- One row per bridge to a broker and run of a process, which updates it every few seconds. A row that is no longer
-- updated belongs to a process that died: readers ignore it, writers delete it.
create table bridge_status (
  connector_id integer not null,
  run_uuid uuid not null,
  connector_name text not null,
  -- The machine and its process, for people.
  process text not null,
  connected boolean not null,
  since timestamptz not null,
  -- Why it is not connected.
  reason text,
  -- If one bridge at a time may connect: whether it is this one.
  lease_held boolean,
  -- When messages last came in and went out.
  last_in timestamptz,
  last_out timestamptz,
  refused bigint not null,
  refreshed timestamptz not null,
  primary key (connector_id, run_uuid)
);
