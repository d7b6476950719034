-- Least writer: 0.2.0
-- Up Migration

-- How long history is kept: what is in force, and what a shorter setting makes of it a day later
-- (src/history/retention.ts). No row: nothing has been settled yet.
create table history_retention (
  what text primary key check (what in ('events', 'measurements')),
  -- Null: everything, because an earlier version did not say how much.
  days integer check (days > 0),
  next_days integer check (next_days > 0),
  next_at timestamptz,
  check ((next_days is null) = (next_at is null))
);

-- TimescaleDB's retention policies delete by the database's clock, whether it may be believed or not. What was in
-- force stays in force; from now on the hourly upkeep drops the chunks.
do $$
declare
  policy record;
begin
  if to_regclass('measurement_hour') is null then
    return;
  end if;
  for policy in
    select coalesce(a.view_name, j.hypertable_name) as relation,
           ceil(extract(epoch from (j.config ->> 'drop_after')::interval) / 86400)::integer as days
      from timescaledb_information.jobs j
      left join timescaledb_information.continuous_aggregates a
        on a.materialization_hypertable_schema = j.hypertable_schema
       and a.materialization_hypertable_name = j.hypertable_name
     where j.proc_name = 'policy_retention'
       and coalesce(a.view_schema, j.hypertable_schema) = current_schema
  loop
    insert into history_retention as r (what, days)
    values (case when policy.relation like 'event%' then 'events' else 'measurements' end, policy.days)
    on conflict (what) do update set days = greatest(r.days, excluded.days);
    perform remove_retention_policy(format('%I', policy.relation)::regclass, if_exists => true);
  end loop;

  -- Only the owner of a hypertable may drop its chunks, and the service may run as a role that owns nothing
  -- (docs/starting.md). An earlier version that starts meanwhile makes its policy again: it goes here too.
  execute $ddl$
    create function drop_history_chunks(relation regclass, before timestamptz) returns integer
      language plpgsql volatile security definer
      set search_path = pg_catalog, pg_temp
      set lock_timeout = '2s'
    as $body$
    declare
      extension name := (select n.nspname
                           from pg_extension e join pg_namespace n on n.oid = e.extnamespace
                          where e.extname = 'timescaledb');
      dropped integer;
    begin
      if not exists (select from pg_class
                      where oid = relation and pg_get_userbyid(relowner) = current_user
                        and relname in ('measurement', 'measurement_hour', 'event', 'event_sense')) then
        raise exception '% is no history of this service', relation using errcode = '42501';
      end if;
      execute format('select %I.remove_retention_policy($1, if_exists => true)', extension)
        using relation;
      if before = '-infinity' then
        return 0;
      end if;
      execute format('select count(*) from %I.drop_chunks($1, older_than => $2)', extension)
        into dropped using relation, before;
      return dropped;
    end
    $body$
  $ddl$;
  execute 'revoke all on function drop_history_chunks(regclass, timestamptz) from public';
end $$;

-- Down Migration

do $$
begin
  if to_regprocedure('drop_history_chunks(regclass, timestamptz)') is not null then
    execute 'drop function drop_history_chunks(regclass, timestamptz)';
  end if;
end $$;
drop table history_retention;
