import { listMigrations, migrationsDir } from '../../src/db/schema-state.ts';
import { databaseKinds } from '../support/database.ts';
import { listFixtures, readFixture, type Fixture } from './fixture.ts';
import type { InstallationKind } from './install.ts';

/** An earlier version's installation, and what it is made from. */
export type UpgradeCase = { version: string; fixture: Fixture; kind: InstallationKind };

const known = await listMigrations(migrationsDir);
const fixtures = await Promise.all(listFixtures().map(readFixture));
const kinds: InstallationKind[] = ['backup', ...databaseKinds];

/** Migrations of this version that the fixture's has not. */
export function pendingOf({ migrations }: Fixture) {
  return known.slice(migrations.length);
}

/** Every version from its backup and on a server of each kind, the newest version first. */
export const upgradeCases: UpgradeCase[] = fixtures
  .toReversed()
  .flatMap((fixture) => kinds.map((kind) => ({ version: fixture.version, fixture, kind })));

/** Without those whose schema is the present one: they have no step to be killed in. */
export const migratingCases = upgradeCases.filter(({ fixture }) => pendingOf(fixture).length > 0);
