import { baseline, listKnownMigrations } from '../../src/db/baseline.ts';
import { databaseKinds } from '../support/database.ts';
import { listFixtures, readFixture, type Fixture } from './fixture.ts';
import type { InstallationKind } from './install.ts';

/** An earlier version's installation, and what it is made from. */
export type UpgradeCase = { version: string; fixture: Fixture; kind: InstallationKind };

const known = await listKnownMigrations();
export const fixtures = await Promise.all(listFixtures().map(readFixture));
const kinds: InstallationKind[] = ['backup', ...databaseKinds];

/** Migrations of this version that the fixture's version lacks. */
export function pendingOf({ migrations }: Fixture) {
  return known.slice(migrations.length);
}

/** Versions whose databases only 0.4.0 can migrate. */
export const refused = fixtures.filter(({ migrations }) => migrations.length < baseline.length);

/** Every other version, from its backup and on each kind of server, the newest version first. */
export const upgradeCases: UpgradeCase[] = fixtures
  .filter((fixture) => !refused.includes(fixture))
  .toReversed()
  .flatMap((fixture) => kinds.map((kind) => ({ version: fixture.version, fixture, kind })));
