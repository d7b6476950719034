import { jobSchema } from '../jobs.ts';
import { earlierInPublic } from '../place-tables.ts';
import type { Sql } from '../sql.ts';

/** An object of the database as `alter … owner to` names it, `name` quoted and with its schema. */
export type OwnedObject = { kind: string; name: string };

/** In `public`: what says where the tables are, and what versions before 0.2.0 had there. */
const inPublic = {
  relations: ['migration', 'sensorium_schema', 'unfinished_restore', ...earlierInPublic.relations],
  functions: earlierInPublic.functions,
};

/**
 * What is the service's and belongs to `role`: its schemas, the job queue's, and all in them; a
 * table's indexes and columns' sequences follow it. An extension's objects stay the extension's.
 * The search path must be `pg_catalog` alone, so that each name has its schema.
 */
export async function listOwned(sql: Sql, role: string): Promise<OwnedObject[]> {
  const { rows } = await sql.query<OwnedObject>(
    `with owner as (select oid from pg_roles where rolname = $1),
          schema as (
            select oid, nspname, nspowner, true as is_whole
              from pg_namespace
             where nspname = '${jobSchema}' or nspname ~ '^sensorium_\\d+_\\d+_\\d+$'
             union all
            select oid, nspname, nspowner, false from pg_namespace where nspname = 'public'
          ),
          extension as (select classid, objid from pg_depend where deptype = 'e')
     select 'schema' as kind, quote_ident(nspname) as name
       from schema join owner on owner.oid = nspowner
      where is_whole
     union all
     select case relkind when 'S' then 'sequence' when 'v' then 'view' when 'f' then 'foreign table'
                         when 'm' then 'materialized view' when 'c' then 'type' else 'table' end,
            format('%I.%I', nspname, relname)
       from pg_class c
       join owner on owner.oid = relowner
       join schema on schema.oid = relnamespace
      where relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c')
        and (is_whole or relname = any ($2))
        and not (relkind = 'S' and exists (
              select from pg_depend
               where classid = 'pg_class'::regclass and objid = c.oid and deptype in ('a', 'i')))
        and ('pg_class'::regclass, c.oid) not in (table extension)
     union all
     select 'routine', p.oid::regprocedure::text
       from pg_proc p
       join owner on owner.oid = proowner
       join schema on schema.oid = pronamespace
      where (is_whole or proname = any ($3))
        and ('pg_proc'::regclass, p.oid) not in (table extension)
     union all
     select 'type', format('%I.%I', nspname, typname)
       from pg_type t
       join owner on owner.oid = typowner
       join schema on schema.oid = typnamespace
      where typtype in ('d', 'e', 'r') and is_whole
        and ('pg_type'::regclass, t.oid) not in (table extension)
     union all
     select 'statistics', format('%I.%I', nspname, stxname)
       from pg_statistic_ext
       join owner on owner.oid = stxowner
       join schema on schema.oid = stxnamespace
      where is_whole`,
    [role, inPublic.relations, inPublic.functions],
  );
  return rows;
}
