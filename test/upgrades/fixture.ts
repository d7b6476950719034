import { readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseKind } from '../support/template.ts';

/** What opens an account's routes: the token of a session, the cookie of the console's, or an API key. */
export type Opener = 'token' | 'cookie' | 'key';

/** What was asked of a version, and what it answered. */
export type Answer = {
  /** E-mail address of the account that asked; null: nobody was logged in. */
  account: string | null;
  /** What the account showed; absent: its token. */
  opener?: Opener;
  path: string;
  accept?: string;
  status: number;
  body: unknown;
};

export type AccountKeys = {
  email: string;
  password: string;
  /** The one before it was changed: opens nothing. */
  earlierPassword?: string;
  /** Of a login by /v2. */
  token: string;
  /** Of a login by /v1, good for one refresh. */
  pair: { token: string; refreshToken: string };
  /** Of the console's session. Absent before 0.4.0, as what follows. */
  cookie?: string;
  /** An API key that is confined to a label. */
  key?: string;
};

/** A request that made something, the `Idempotency-Key` that it was sent with, and the answer. */
export type Made = { account: string; path: string; body: object; key: string; answer: object };

/** A device, and with which tokens it is let in and with which it is not. */
export type DeviceKeys = { uuid: string; opens: string[]; refused: string[] };

/** One measurement that completes the evidence a device has collected, and the event that it fires. */
export type Next = { message: { sId: string; val: unknown }; evId: number };

/** What a version left and said: enough to tell whether a later one takes it over whole. */
export type Fixture = {
  version: string;
  /** When its answers were taken, ms: later versions are run with their clock set back to this. */
  recordedTs: number;
  /** Those of its database, in order. */
  migrations: string[];
  accounts: AccountKeys[];
  devices: DeviceKeys[];
  /** Half-full windows: the device and what fires its events, one measurement each. */
  next: { account: string; uuid: string; measurements: Next[]; state: object };
  /** Notifications that waited for somebody to take them. */
  queued: { account: string; uuid: string; notificationIds: number[] };
  /** Answered alike when they are sent again. Absent before 0.4.0. */
  made?: Made[];
  /** Devices whose next subscription is answered with this profile. */
  waiting: { uuid: string; pId: string }[];
  answers: Answer[];
};

const fixturesDir = new URL('./fixtures/', import.meta.url).pathname;

/** Versions that a fixture is kept of. */
export function listFixtures(): string[] {
  return readdirSync(fixturesDir).toSorted();
}

/** Where the parts of a version's fixture are. */
export const filesOf = (version: string) => filesIn(join(fixturesDir, version));

/** Where the parts of a fixture are that is in a directory of its own. */
export function filesIn(dir: string) {
  return {
    dir,
    /** A backup as `npm run backup` makes it, packed. */
    backup: join(dir, 'backup.zst'),
    /** The same rows as `npm run backup -- --portable` writes them, packed. None of versions before 0.4.0. */
    portable: join(dir, 'portable.zst'),
    /** The same rows as SQL. */
    rows: join(dir, 'rows.sql'),
    answers: join(dir, 'answers.json'),
  };
}

/** The schema that a version makes in an empty database of a kind (make-catalog.ts). */
export const catalogFile = (version: string, kind: DatabaseKind) =>
  join(filesOf(version).dir, `catalog.${kind}.txt`);

export const readFixture = (version: string) => readFixtureIn(filesOf(version));

export async function readFixtureIn({ answers }: { answers: string }): Promise<Fixture> {
  return JSON.parse(await readFile(answers, 'utf8')) as Fixture;
}

/** The headers or the token that an account shows. Throws where it has none of the kind. */
export function openWith(account: AccountKeys, opener: Opener = 'token') {
  const { [opener]: secret } = account;
  if (secret === undefined) throw new Error(`${account.email} has no ${opener}.`);
  return opener === 'cookie' ? { cookie: secret } : { token: secret };
}

/** One line an answer, so that a person finds one and a difference is short. */
export async function writeFixture(
  { answers, ...rest }: Fixture,
  { answers: file }: { answers: string },
): Promise<void> {
  const head = JSON.stringify(rest, null, 2).replace(/\n\}$/, '');
  const lines = answers.map((answer) => JSON.stringify(answer)).join(',\n');
  await writeFile(file, `${head},\n  "answers": [\n${lines}\n]}\n`);
}
