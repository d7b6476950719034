import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrationsDir } from '../../src/db/schema-state.ts';

/** A migration of a later version; each gets the next number. */
export type LaterMigration = { name: string; leastWriter: string; sql: string };

/** A directory with this program's migrations and those of a later version. */
export function makeLaterMigrations(later: LaterMigration[]): { dir: string; remove(): void } {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-later-'));
  cpSync(migrationsDir, dir, { recursive: true });
  for (const { name, leastWriter, sql } of later)
    writeFileSync(
      join(dir, `${name}.sql`),
      `-- Least writer: ${leastWriter}\n-- Up Migration\n${sql};\n`,
    );
  return { dir, remove: () => rmSync(dir, { recursive: true }) };
}
