import type { Client } from 'pg';

/**
 * Our objects that do not belong to the service's role: everything in the schemas of tables and jobs, and the two
 * tables in `public` that record where they are. The query differs from the program's own on purpose.
 */
export async function listNotOwned(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `with schema as (
            select oid, nspname from pg_namespace
             where nspname like 'sensorium\\_%' or nspname in ('graphile_worker', 'public')
          ),
          object (schema_id, owner, name) as (
            select relnamespace, relowner, relname::text from pg_class
             union all select pronamespace, proowner, proname from pg_proc
             union all select typnamespace, typowner, typname from pg_type
             union all select stxnamespace, stxowner, stxname from pg_statistic_ext
          )
     select format('%s.%s', nspname, name) as name
       from object join schema on schema.oid = schema_id
      where owner <> 'sensorium_service'::regrole
     union all
     select nspname from pg_namespace
      where (nspname like 'sensorium\\_%' or nspname = 'graphile_worker')
        and nspowner <> 'sensorium_service'::regrole
     union all
     select datname from pg_database
      where datname = 'sensorium' and datdba <> 'sensorium_service'::regrole
      order by 1`,
  );
  return rows.map(({ name }) => name);
}

/** All tables that belong to the superuser, except the catalogs. */
export async function listSuperusers(client: Client): Promise<unknown[]> {
  const { rows } = await client.query(
    `select relname from pg_class
      where relowner = 'sensorium'::regrole and relkind = 'r'
        and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
      order by relnamespace, relname`,
  );
  return rows;
}
