import { StartError } from '../start-error.ts';
import { compareVersions } from './compare-versions.ts';
import type { KnownMigration } from './known-migrations.ts';
import type { AppliedMigration, CurrentSchema, SchemaState } from './schema-state.ts';

/** Whether a program of this version may write, as the schema says. */
export function mayWrite(version: string, { leastWriter }: CurrentSchema): boolean {
  return compareVersions(version, leastWriter) >= 0;
}

/**
 * Throws a StartError where the database has a migration that this program does not know, unless that
 * migration says that this program's version may write.
 */
export function refuseForeign(
  { applied, schema }: SchemaState,
  known: KnownMigration[],
  version: string,
): void {
  const names = new Set(known.map(({ name }) => name));
  const foreign = applied.filter(({ name }) => !names.has(name)).filter(isForbidden);
  const [first] = foreign;
  if (first) throw new StartError(describeForeign(first, version));
  // Its tables are moved before the first migration has run, and may have been left like that.
  if (schema && !mayWrite(version, schema)) throw new StartError(describeMoved(schema, version));

  function isForbidden({ leastWriter }: AppliedMigration): boolean {
    return leastWriter === null || compareVersions(version, leastWriter) < 0;
  }
}

function describeForeign({ name, programVersion, leastWriter }: AppliedMigration, version: string) {
  const by =
    programVersion === null ? 'a version that is not recorded' : `version ${programVersion}`;
  const wanted = leastWriter ?? programVersion;
  const start = wanted === null ? 'the version that ran it' : `version ${wanted} or later`;
  return [
    `The database was migrated by a later Sensorium: migration ${name}, run by ${by}, does not let version ${version} write.`,
    `Start ${start}, or restore a backup from before (docs/upgrading.md).`,
  ];
}

/** For a running and a starting program: which version the tables belong to now, and what to do. */
export function describeMoved(
  { leastWriter, changedBy }: CurrentSchema,
  version: string,
): string[] {
  return [
    `Sensorium ${changedBy} has migrated the database, and lets nothing before version ${leastWriter} write; this is ${version}.`,
    `Start version ${leastWriter} or later, or restore a backup from before (docs/upgrading.md).`,
  ];
}
