import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { StartError } from '../start-error.ts';
import {
  type KnownMigration,
  listMigrations,
  migrationsDir,
  type SchemaState,
} from './schema-state.ts';

// The schema as 0.4.0 left it. 0.4.0 reached it through 35 migrations. Here it is one description, in src/db/schema,
// from which an empty database is created in one step. The names of the 35 are still recorded, so that the database
// counts as one on which they ran: for this version, for earlier ones that may run beside it, and for portable copies.
// Only 0.4.0 can run the migrations that an older database lacks.

/** The last version that migrates databases of the versions before it, and its commit. */
const bridge = { version: '0.4.0', commit: '2b6ac1289c679c0c2d9fce0efa5bcb54fcc0a2ca' };

/** The lowest version that could still write after each of these migrations. */
const namesByLeastWriter: [leastWriter: string, names: string[]][] = [
  [
    '0.1.0',
    [
      '000001_accounts-and-devices',
      '000002_measurements-and-events',
      '000003_outbox',
      '000004_sessions',
      '000005_columnstore-and-aggregate',
      '000006_series',
      '000007_evidence-without-memory',
    ],
  ],
  ['0.2.0', ['000008_secret-check']],
  ['0.1.0', ['000009_bridge-status']],
  [
    '0.2.0',
    [
      '000010_quotas',
      '000011_logins',
      '000012_messages',
      '000013_audit',
      '000014_small-writes',
      '000015_evidence-log',
      '000016_contacts',
      '000017_alarms',
      '000018_ticks',
      '000019_sense-clocks',
      '000020_turns',
      '000021_password-links',
      '000022_api-keys',
      '000023_stream-tickets',
      '000024_idempotency-keys',
      '000025_jobs',
      '000026_refused-logins',
      '000027_kept-displays',
      '000028_removed-names',
      '000029_believed-time',
      '000030_retention',
      '000031_removals',
      '000032_serials',
      '000033_push-tokens',
      '000034_after-a-leap',
      '000035_token-secrets',
    ],
  ],
];

/** The migrations that src/db/schema replaces, in order. */
export const baseline: readonly KnownMigration[] = namesByLeastWriter.flatMap(
  ([leastWriter, names]) => names.map((name) => ({ name, leastWriter })),
);

/** All migrations of this program, those of the baseline first. `dir` contains the others. */
export async function listKnownMigrations(dir = migrationsDir): Promise<KnownMigration[]> {
  return [...baseline, ...(await listMigrations(dir))];
}

const schemaDir = fileURLToPath(new URL('./schema/', import.meta.url));

/**
 * Creates the tables of the baseline in an empty database, in one transaction, and records its migrations as run.
 * `schema` must exist and be empty, and the session's `sensorium.program_version` must be set.
 */
export async function makeBaseline(client: pg.Client, schema: string): Promise<void> {
  const files = (await readdir(schemaDir)).filter((file) => file.endsWith('.sql')).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(schemaDir, file), 'utf8')));
  await client.query('begin');
  try {
    // The functions of extensions are in `public`.
    await client.query(`set local search_path to ${pg.escapeIdentifier(schema)}, public`);
    for (const text of texts) await client.query(text);
    await client.query(
      `insert into public.migration (name, run_on, least_writer)
       select name, now(), least_writer
         from unnest($1::text[], $2::text[]) with ordinality as m (name, least_writer, place)
        order by place`,
      [baseline.map(({ name }) => name), baseline.map(({ leastWriter }) => leastWriter)],
    );
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** Throws a StartError for a database that lacks migrations of the baseline, and leaves it unchanged. */
export function refuseEarlier({ applied }: Pick<SchemaState, 'applied'>): void {
  if (applied.length === 0) return;
  const missing = findMissing(applied.map(({ name }) => name));
  if (missing === null) return;
  throw new StartError([
    `The database is of a version before ${bridge.version}: ${missing}. Nothing was changed.`,
    `Make a backup, start version ${bridge.version} on it once (commit ${bridge.commit}), stop it, and start this version again (docs/upgrading.md).`,
  ]);
}

/** The same for a portable copy with these migrations. `of` names the copy. */
export function refuseEarlierCopy(migrations: readonly string[], of: string): void {
  const missing = findMissing(migrations);
  if (missing === null) return;
  throw new StartError([
    `${of}: is of a version before ${bridge.version}: ${missing}. Nothing was restored.`,
    `Restore it with version ${bridge.version} (commit ${bridge.commit}), and start this version on what that makes (docs/upgrading.md).`,
  ]);
}

/** Describes the migrations of the baseline that are missing; null if none is. */
function findMissing(names: readonly string[]): string | null {
  const missing = baseline.filter(({ name }) => !names.includes(name));
  if (missing[0] === undefined) return null;
  return `it lacks ${missing.length} of the ${baseline.length} migrations of ${bridge.version}, the first is ${missing[0].name}`;
}
