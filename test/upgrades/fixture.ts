import { readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseKind } from '../support/template.ts';

/** The kinds of credentials of an account: a session's token, the cookie of a console session, or an API key. */
export type Opener = 'token' | 'cookie' | 'key';

/** A request to a version, and its answer. */
export type Answer = {
  /** E-mail address of the account that asked; null: nobody was logged in. */
  account: string | null;
  /** The kind of credential; absent: the token. */
  opener?: Opener;
  path: string;
  accept?: string;
  status: number;
  body: unknown;
};

export type AccountKeys = {
  email: string;
  password: string;
  /** The password before it was changed; no longer valid. */
  earlierPassword?: string;
  /** From a login by /v2. */
  token: string;
  /** From a login by /v1, valid for one refresh. */
  pair: { token: string; refreshToken: string };
  /** Of the console's session. This and the next member are absent before 0.4.0. */
  cookie?: string;
  /** An API key that is confined to a label. */
  key?: string;
};

/** A request that created something, its `Idempotency-Key`, and the answer. */
export type Made = { account: string; path: string; body: object; key: string; answer: object };

/** A device, with the tokens that are accepted and those that are refused. */
export type DeviceKeys = { uuid: string; opens: string[]; refused: string[] };

/** One measurement that completes the evidence of a device, and the event that it fires. */
export type Next = { message: { sId: string; val: unknown }; evId: number };

/** What a version left and answered: enough to tell whether a later one takes everything over. */
export type Fixture = {
  version: string;
  /** When its answers were recorded, ms. Later versions run with their clock set back to this. */
  recordedTs: number;
  /** Those of its database, in order. */
  migrations: string[];
  accounts: AccountKeys[];
  devices: DeviceKeys[];
  /** Half-full windows: the device, and what fires its events with one measurement each. */
  next: { account: string; uuid: string; measurements: Next[]; state: object };
  /** Notifications that were waiting to be delivered. */
  queued: { account: string; uuid: string; notificationIds: number[] };
  /** Answered alike when they are sent again. Absent before 0.4.0. */
  made?: Made[];
  /** Devices whose next subscription is answered with this profile. */
  waiting: { uuid: string; pId: string }[];
  answers: Answer[];
};

const fixturesDir = new URL('./fixtures/', import.meta.url).pathname;

/** Versions with a fixture. */
export function listFixtures(): string[] {
  return readdirSync(fixturesDir).toSorted();
}

/** The files of a version's fixture. */
export const filesOf = (version: string) => filesIn(join(fixturesDir, version));

/** The files of a fixture in a directory of its own. */
export function filesIn(dir: string) {
  return {
    dir,
    /** A backup from `npm run backup`, packed. */
    backup: join(dir, 'backup.zst'),
    /** The same rows from `npm run backup -- --portable`, packed. Versions before 0.4.0 have none. */
    portable: join(dir, 'portable.zst'),
    /** The same rows as SQL. */
    rows: join(dir, 'rows.sql'),
    answers: join(dir, 'answers.json'),
  };
}

/** The schema that a version creates in an empty database of a kind (make-catalog.ts). */
export const catalogFile = (version: string, kind: DatabaseKind) =>
  join(filesOf(version).dir, `catalog.${kind}.txt`);

export const readFixture = (version: string) => readFixtureIn(filesOf(version));

export async function readFixtureIn({ answers }: { answers: string }): Promise<Fixture> {
  return JSON.parse(await readFile(answers, 'utf8')) as Fixture;
}

/** The headers or the token of an account. Throws if it has no such credential. */
export function openWith(account: AccountKeys, opener: Opener = 'token') {
  const { [opener]: secret } = account;
  if (secret === undefined) throw new Error(`${account.email} has no ${opener}.`);
  return opener === 'cookie' ? { cookie: secret } : { token: secret };
}

/** Writes one line per answer, so that a person can find one and differences stay short. */
export async function writeFixture(
  { answers, ...rest }: Fixture,
  { answers: file }: { answers: string },
): Promise<void> {
  const head = JSON.stringify(rest, null, 2).replace(/\n\}$/, '');
  const lines = answers.map((answer) => JSON.stringify(answer)).join(',\n');
  await writeFile(file, `${head},\n  "answers": [\n${lines}\n]}\n`);
}
