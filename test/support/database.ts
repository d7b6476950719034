import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';
import { openDatabase, type Database, type DatabaseOptions } from '../../src/db/database.ts';
import { runOn, schema, urlOf, type DatabaseKind, type Template } from './template.ts';

export type { DatabaseKind } from './template.ts';

/** The kinds of storage in this run, for `describe.each(databaseKinds)`. `npm test` has PostgreSQL only. */
export const databaseKinds: DatabaseKind[] = inject('templates').map(({ kind }) => kind);

export type TestDatabase = {
  db: Database;
  url: string;
  kind: DatabaseKind;
  drop(): Promise<void>;
};

/** A fresh, migrated database. `drop` closes `db` and removes the database, whoever is still connected. */
export async function testDatabase(kind: DatabaseKind = 'postgresql'): Promise<TestDatabase> {
  const template = findTemplate(kind);
  const name = newName();
  await runOn(template.adminUrl, (admin) => clone(template, name, (sql) => admin.query(sql)));
  return open(template, name);
}

/** The same without any tables, on a server of that kind. */
export async function emptyDatabase(kind: DatabaseKind = 'postgresql'): Promise<TestDatabase> {
  const template = findTemplate(kind);
  const name = newName();
  await runOn(template.adminUrl, (admin) => admin.query(`create database ${name}`));
  return open(template, name);
}

function findTemplate(kind: DatabaseKind): Template {
  const template = inject('templates').find((candidate) => candidate.kind === kind);
  if (template === undefined) throw new Error(`No ${kind} here.`);
  return template;
}

function newName(): string {
  return `test_${randomBytes(8).toString('hex')}`;
}

function open({ adminUrl, kind }: Template, name: string): TestDatabase {
  const url = urlOf(adminUrl, name);
  const db = openTestDatabase(url);
  return {
    db,
    url,
    kind,
    async drop() {
      await db.close();
      await runOn(adminUrl, (admin) => admin.query(`drop database ${name} with (force)`));
    },
  };
}

/** A pool for a test. Ignores errors of idle connections, because the next statement fails with them. */
export function openTestDatabase(
  connectionString: string,
  options: Partial<DatabaseOptions> = {},
): Database {
  return openDatabase({
    connectionString,
    schema,
    maxConnections: 10,
    // A busy machine is no reason to answer 503. A database that is away has tests of its own.
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 20_000,
    onIdleError: () => undefined,
    ...options,
  });
}

/**
 * Copies files: writing the pages to the log, the default, takes twice the processor time. TimescaleDB's launcher
 * occasionally connects to every database, also to a template.
 */
async function clone(
  template: Template,
  name: string,
  run: (sql: string) => Promise<unknown>,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await run(`create database ${name} template ${template.name} strategy file_copy`);
      return;
    } catch (error) {
      const inUse = error instanceof Error && 'code' in error && error.code === '55006';
      if (!inUse || attempt === 50) throw error;
      await delay(100);
    }
  }
}
