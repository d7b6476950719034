import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findPackagedPostgres, placePrograms, runProgram } from '../../src/db/embedded/programs.ts';
import { findOwner } from '../../src/db/embedded/cluster.ts';

test('the package of this platform has the programs in the expected place', async () => {
  const packaged = findPackagedPostgres();
  // A backup and the data directory depend on it: the package's version is that of its PostgreSQL.
  expect(packaged.version).toMatch(/^\d+\.\d+\.\d+/);
  for (const program of ['initdb', 'pg_ctl', 'postgres'])
    expect(existsSync(join(packaged.dir, 'bin', program))).toBe(true);
  const programs = await placePrograms(packaged, findOwner());
  const [major] = packaged.version.split('.');
  for (const program of ['initdb', 'pg_ctl', 'postgres'] as const)
    expect(await runProgram(programs, program, ['--version'])).toMatch(
      new RegExp(`^${program} \\(PostgreSQL\\) ${major}\\.`),
    );
});
