import type { Config } from '../config/config.ts';
import { deriveSecretCheck, secretIdOf } from '../config/keys.ts';
import { findOwnSecret, readOrMakeSecret, secretFileIn } from '../config/secret.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Log } from '../log/logger.ts';
import { StartError } from '../start-error.ts';

type SecretLog = Pick<Log, 'info' | 'warn'>;

/**
 * The secret that this process uses: the one found, if the database knows it or nothing in the database depends on
 * another one; a new one for the data directory if none exists and none is needed. Stores its check value before
 * anything is derived from it. Throws a StartError that says what to restore. Processes that start at the same time
 * run this one after the other.
 */
export async function settleSecret(
  db: Database,
  config: SecretConfig,
  log: SecretLog,
): Promise<string> {
  const { secret, examined, next } = await db.transaction(async (tx) => {
    await lockChecks(tx);
    const examined = await examineSecret(tx, config);
    if (!examined.isAllowed) throw new StartError(describeRefusal(examined, config));
    const secret = examined.secret ?? (await readOrMakeSecret(config.dataDir));
    const next = nextChecks(examined.checks, deriveSecretCheck(secret), examined.previous);
    if (next.join() !== examined.checks.join()) await replaceChecks(tx, next);
    // A database of 0.1.0. Its devices' tokens are made with the secret that is recorded now, the older of two.
    const [oldest] = next.slice(-1);
    if (examined.checks.length === 0 && oldest) await noteUnknown(tx, secretIdOf(oldest));
    return { secret, examined, next };
  });
  tell(log, config.secretPlace, examined, next);
  return secret;
}

function tell(log: SecretLog, place: string, examined: Examined, next: string[]): void {
  const { checks, dependents } = examined;
  if (!examined.isKnown && checks.length > 0)
    log.warn(
      { event: 'secret.replaced' },
      `${place}: a different secret is adopted, because there are no devices and no sessions. Restart processes that run with the previous one.`,
    );
  else if (dependents !== null && dependents.devices + dependents.sessions > 0)
    log.info(
      { event: 'secret.noted' },
      `${place}: recorded as this database's secret; from now on any other is refused.`,
    );
  else if (checks.length > 0 && next[0] !== checks[0])
    log.info(
      { event: 'secret.noted' },
      `${place}: recorded as the newer secret; the previous one is still accepted.`,
    );
  else if (next.length < checks.length)
    log.info(
      { event: 'secret.noted' },
      `${place}: the newest secret came without SECRET_PREVIOUS; the previous one is no longer accepted.`,
    );
}

/** What depends on the secret. `sessions`: those in the database, not those in Redis. */
export type Dependents = { devices: number; sessions: number };

/** Until the transaction ends, no other process can store a check value. Reading is not blocked. */
async function lockChecks(sql: Sql): Promise<void> {
  await sql.query('lock table secret_check in exclusive mode');
}

/** Newest first. */
export async function listChecks(sql: Sql): Promise<string[]> {
  const { rows } = await sql.query<{ value: string }>(`
    select value
    from secret_check
    order by place, value
  `);
  return rows.map(({ value }) => value);
}

/** Stores exactly these check values, newest first, and removes others. */
async function replaceChecks(sql: Sql, checks: string[]): Promise<void> {
  await sql.query(
    `
      delete from secret_check
      where value <> all ($1::text[])
    `,
    [checks],
  );
  await sql.query(
    `
      insert into secret_check (value, place)
      select value, place
      from unnest($1::text[]) with ordinality as noted (value, place)
      on conflict (value) do update set place = excluded.place
    `,
    [checks],
  );
}

export async function countDependents(sql: Sql): Promise<Dependents> {
  const { rows } = await sql.query<Dependents>(`
    select
      (select count(*) from device) as devices,
      (select count(*) from session where expires_at > now()) as sessions
  `);
  return rows[0] ?? { devices: 0, sessions: 0 };
}

/**
 * Counts devices whose token may still be of one of these check values' secrets: they have not shown a token of
 * another secret yet, or theirs is unknown. Reads all devices.
 */
export async function countTokensOf(sql: Sql, checks: string[]): Promise<number> {
  if (checks.length === 0) return 0;
  const { rows } = await sql.query<{ count: number }>(
    `
      select count(*) as count
      from device
      where token_secret = any($1::text[]) and account_id is not null
    `,
    [[unknownSecret, ...checks.map(secretIdOf)]],
  );
  return rows[0]?.count ?? 0;
}

/** Records this secret for devices whose token's secret is unknown. */
async function noteUnknown(sql: Sql, secretId: string): Promise<void> {
  await sql.query('update device set token_secret = $1 where token_secret = $2', [
    secretId,
    unknownSecret,
  ]);
}

/** `device.token_secret` of a device that was registered before the database knew any secret. */
const unknownSecret = '';
/** `device.token_secret` of a device whose secret was given up; it matches no secret. */
const givenUp = '-';

async function deleteAllSessions(sql: Sql): Promise<void> {
  await sql.query('delete from session');
}

/** Where a process gets its secret from. */
type SecretConfig = Pick<Config, 'secret' | 'secretPlace' | 'previousSecret' | 'dataDir'>;

/** Which secret was found, and whether the database knows it. */
export type Examined = GivenChecks & {
  /** Null: neither the environment nor the data directory has one. */
  secret: string | null;
  /** The database's check values, newest first. */
  checks: string[];
  isKnown: boolean;
  isAllowed: boolean;
  /** Another one was given, but the one in the data directory is the database's. */
  isOwnKnown: boolean;
  /** Null if not counted, because the secret is known. */
  dependents: Dependents | null;
  /** Devices that this start would lock out: it ends a change of the secret, and they have no new token yet. */
  left: number;
};

/** Examines the secret and the database. Creates and changes nothing. Throws a StartError. */
export async function examineSecret(sql: Sql, config: SecretConfig): Promise<Examined> {
  const secret = config.secret ?? (await findOwnSecret(config.dataDir));
  const current = secret === null ? null : deriveSecretCheck(secret);
  const previous = config.previousSecret === null ? null : deriveSecretCheck(config.previousSecret);
  const given = { current, previous };
  const checks = await listChecks(sql);
  if (isKnown(checks, given)) {
    const left = await countTokensOf(sql, endedChecks(checks, given));
    return {
      ...given,
      secret,
      checks,
      isKnown: true,
      isAllowed: left === 0,
      isOwnKnown: false,
      dependents: null,
      left,
    };
  }
  // Counting all devices is slow if there are many, so it does not happen at every start.
  const dependents = await countDependents(sql);
  const isInUse = dependents.devices + dependents.sessions > 0;
  const allowed = isAllowed(checks, given, isInUse);
  const isOwnKnown = !allowed && checks.includes(await findOwnCheck(config));
  const found = { ...given, secret, checks, isOwnKnown, dependents };
  return { ...found, isKnown: false, isAllowed: allowed, left: 0 };
}

/** The check value of an unused secret in the data directory; empty if there is none or it cannot be read. */
async function findOwnCheck({ secret, dataDir }: SecretConfig): Promise<string> {
  const own = secret === null ? null : await findOwnSecret(dataDir).catch(() => null);
  return own === null ? '' : deriveSecretCheck(own);
}

/** Check values of the secrets that a process was given; null if there is none. */
type GivenChecks = { current: string | null; previous: string | null };

/** Whether the database knows one of them. Beside a known previous secret, a new one is accepted. */
function isKnown(checks: string[], { current, previous }: GivenChecks): boolean {
  return [current, previous].some((check) => check !== null && checks.includes(check));
}

/**
 * Whether a process may start with them. If nothing depends on a secret, any will do. A database of a version that
 * stored no check value accepts a given secret, but never one that would have to be created.
 */
function isAllowed(checks: string[], given: GivenChecks, isInUse: boolean): boolean {
  if (!isInUse || isKnown(checks, given)) return true;
  return checks.length === 0 && given.current !== null;
}

/**
 * The check values of a change that this start would end: its secret is the newest and comes without SECRET_PREVIOUS,
 * although the database still keeps the previous one.
 */
function endedChecks(checks: string[], { current, previous }: GivenChecks): string[] {
  if (current === null) return [];
  const kept = nextChecks(checks, current, previous);
  return checks.includes(current) ? checks.filter((check) => !kept.includes(check)) : [];
}

/**
 * The check values that the database keeps for a process that was allowed to start, newest first. The one before the
 * newest stays while processes still start with SECRET_PREVIOUS. The first process that starts with the newest alone
 * ends the change.
 */
function nextChecks(checks: string[], current: string, previous: string | null): string[] {
  const [newest] = checks;
  if (previous === null || previous === current) {
    if (newest === current || !checks.includes(current)) return [current];
    // This process still has the older secret, so it must not end the newer one.
    return checks;
  }
  if (!isKnown(checks, { current, previous })) return [current, previous];
  // If SECRET_PREVIOUS is the newest, the change is being undone. Otherwise a known secret keeps its place, and an
  // unknown previous one (its change has ended, or has not begun) is not added.
  if (checks.includes(current) && newest !== previous) return checks;
  return [current, ...checks.filter((check) => check !== current)];
}

/** Where the secret was looked for, what is wrong, what to restore, and the command that accepts another one. */
export function describeRefusal(
  examined: Pick<Examined, 'secret' | 'previous' | 'checks' | 'isOwnKnown' | 'dependents' | 'left'>,
  config: Pick<SecretConfig, 'secret' | 'secretPlace' | 'dataDir'>,
): string[] {
  const { secretPlace: place } = config;
  if (examined.left > 0) return describeLeft(examined.left, place);
  const isMissing = examined.secret === null;
  return [
    `${place}: ${isMissing ? missing : other}${previousToo(examined)}`,
    `The tokens of ${describeDependents(examined.dependents)} were made with the earlier secret.`,
    `To restore it: ${examined.isOwnKnown ? howToUseOwn(config) : howToRestore(config)}`,
    isMissing
      ? 'If it is lost for good, `npm run secret -- accept` creates a new one; it first says ' +
        'what stops working.'
      : 'To change it, give the earlier one as SECRET_PREVIOUS. If that is lost for good, `npm ' +
        'run secret -- accept` adopts this one; it first says what stops working.',
  ];
}

/** A change of the secret would end before every device has its new token. */
function describeLeft(left: number, place: string): string[] {
  const devices = count(left, 'device');
  return [
    `${place}: ${devices} still ${left === 1 ? 'has' : 'have'} a token of the previous secret ` +
      'and would be locked out.',
    'Set SECRET_PREVIOUS (or SECRET_PREVIOUS_FILE) to that secret again until they have logged in with a new token. `npm run secret -- status` counts them.',
    'To continue without them, run `npm run secret -- accept`; it first says what stops working.',
  ];
}

/** In words: "12 devices and 1 session". */
export function describeDependents(dependents: Dependents | null): string {
  const { devices = 0, sessions = 0 } = dependents ?? {};
  return `${count(devices, 'device')} and ${count(sessions, 'session')}`;
}

const missing = 'does not exist, and neither SECRET nor SECRET_FILE is set.';
const other = 'is not the secret that this database is used with.';

function previousToo({ previous, checks }: Pick<Examined, 'previous' | 'checks'>): string {
  const isCompared = previous !== null && checks.length > 0;
  return isCompared ? ' SECRET_PREVIOUS is not that one either.' : '';
}

function howToUseOwn({ secretPlace, dataDir }: Pick<SecretConfig, 'secretPlace' | 'dataDir'>) {
  const [variable = secretPlace] = secretPlace.split(' ');
  return `remove ${variable}. ${secretFileIn(dataDir)} holds the earlier one.`;
}

function howToRestore({ secret, secretPlace }: Pick<SecretConfig, 'secret' | 'secretPlace'>) {
  if (secretPlace === 'SECRET') return 'set SECRET to its earlier value.';
  if (secret !== null) return `restore the previous content of ${secretPlace}.`;
  return (
    `restore ${secretPlace} from a backup (backups made with \`npm run backup\` contain it as ` +
    '"secret"), or set SECRET or SECRET_FILE if that is how it was given.'
  );
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

/**
 * Ends a change of the secret although some devices have no new token: the secret that is found becomes the only one.
 * Its sessions continue. Nobody can read those of the previous secret any more.
 */
export async function endChange(db: Database, current: string): Promise<void> {
  await db.transaction(async (tx) => {
    await lockChecks(tx);
    await replaceChecks(tx, [current]);
    await noteUnknown(tx, givenUp);
  });
}

/**
 * Makes the secret that is found, or a new one for the data directory, the only one, whatever the database knew
 * before. Ends the sessions in the database. Returns whether it created the secret.
 */
export async function acceptSecret(db: Database, config: SecretConfig): Promise<{ made: boolean }> {
  return db.transaction(async (tx) => {
    await lockChecks(tx);
    const found = config.secret ?? (await findOwnSecret(config.dataDir));
    const secret = found ?? (await readOrMakeSecret(config.dataDir));
    await replaceChecks(tx, [deriveSecretCheck(secret)]);
    await noteUnknown(tx, givenUp);
    await deleteAllSessions(tx);
    return { made: found === null };
  });
}
