import { createHash } from 'node:crypto';
import type { Bus } from '../bus/bus.ts';
import type { Sense } from '../contract/configuration.ts';
import {
  type Cause,
  listCauses,
  checkPurposeSizes,
  cutText,
  type Purpose,
  type PurposeEvent,
  type PurposePath,
} from '../contract/purpose.ts';
import {
  joinWarnings,
  type Warned,
  warned,
  type Warning,
  warning,
  warnOfActions,
} from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import type { Sql } from '../db/sql.ts';
import { checkCosts, checkProfile } from '../engine/check.ts';
import type { Bounds } from '../engine/explore/classes.ts';
import { listWarningsYielding, warnOfPolygons } from '../engine/warnings.ts';
import { DomainError, type Problem } from '../errors.ts';
import { forEachYielding, yieldToEventLoop } from '../lib/event-loop.ts';
import { isUuid } from '../lib/text.ts';
import { explainRefusal, limitOf, type LimitsOf, lockUsage } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { WrittenBy } from '../versions/versions.ts';
import { noteInstaller } from './history.ts';
import {
  countOwnEngines,
  listDeviceSenses,
  listPurposeBytes,
  listPurposesById,
  type ProfileInstall,
  removeUnused,
  transition,
} from './queries.ts';

/*
 * How a profile gets from the request to the device's answer. Each step is the function of that name.
 *
 *   src/profiles
 *    1. installProfile      install.ts             checks purposes and devices; then one transaction:
 *       claimTargets        install.ts             locks the devices' states
 *       supersedeProfiles   install.ts             no other profile is pending on them any more
 *       storeContent        install.ts             the purposes are stored, once for all profiles with them
 *       setPending          install.ts             the profile is pending on each of them
 *    2. publish             bus                    after the commit: notifies every process of these devices
 *   connector
 *    3. due                 device/downlinks.ts    asks what to send a connected device
 *       due                 downlinks.ts           (here) the profile that is pending
 *       send                mqtt/subscribe.ts      as a message; over HTTP the device asks for it (http/long-poll.ts)
 *    4. delivered           downlinks.ts           the device has acknowledged it: it is not sent again
 *   src/ingest: the device's answer is processed like any message (ingest/ingest.ts)
 *    5. applyAnswer         rules/apply.ts         the profile becomes current (becomeCurrent), or is rejected
 *       saveProfileAnswers  downlinks.ts           (here) stored in the transaction that acknowledges the answer
 */

export type InstallDeps = {
  db: Database;
  bus: Bus;
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  /** Warnings about SMS that purposes send. */
  warnOfSms: (accountId: number, purposes: Purpose[], pathOf: PurposePath) => Promise<Warning[]>;
  /** What exploring purposes shows to be warned of; null if that takes too long. */
  warnOfExplored: (accountId: number, asked: Explored) => Promise<Warning[] | null>;
};

type Explored = { purposes: Purpose[]; pathOf: PurposePath; bounds: ReadonlyMap<string, Bounds> };

/**
 * Installs a profile on all these devices or, on an error, on none: `not-found` if a device or a purpose is not the
 * account's, `invalid-input` if the purposes do not fit together. Connected devices receive it at once. `labels`: the
 * caller has only devices with one of these; null: all devices. `onInstalled` runs at the end of the transaction, which
 * may be repeated.
 */
export async function installProfile(
  { db, bus, quotas, limitsOf, warnOfSms, warnOfExplored }: InstallDeps,
  accountId: number,
  request: ProfileInstall,
  labels: readonly string[] | null = null,
  onInstalled: (
    tx: Sql,
    installed: { pId: string; uuids: string[]; purposes: readonly Purpose[] },
  ) => Promise<void> = async () => undefined,
): Promise<{ pId: string } & Warned> {
  const uuids = normalize(request.deviceAuthUuids);
  const pathOf = placeIn(request);
  const { purposes, text, problems } = await readAsked(db, accountId, request, limitsOf(accountId));
  const silenceMs = firstSilenceMs(purposes);
  const installing = { accountId, uuids, labels, text, problems, quotas, silenceMs };
  const install = async (tx: Sql) => {
    const installed = await installWithin(tx, installing);
    await onInstalled(tx, { pId: installed.pId, uuids, purposes });
    return installed;
  };
  const { pId, targets } = await retryDeadlock(() => db.transaction(install));
  await forEachYielding(targets, (device) => bus.publish('device', { ...device, push: 'profile' }));

  const deviceIds = targets.map(({ deviceId }) => deviceId);
  const ofSms = () => warnOfSms(accountId, purposes, pathOf);
  const exploreWith = (bounds: Explored['bounds']) =>
    warnOfExplored(accountId, { purposes, pathOf, bounds });
  return {
    pId,
    ...(await warnOfInstall(db, { purposes, deviceIds, pathOf, ofSms, exploreWith })),
  };
}

type AskedPurposes = Pick<ProfileInstall, 'purposeUuids' | 'purposes'>;

/** The purposes that a request names and gives, and what is wrong with them. Throws `not-found`. */
export async function readAsked(
  sql: Sql,
  accountId: number,
  request: AskedPurposes,
  limits: QuotaSettings,
): Promise<{ purposes: Purpose[]; text: ProfileText; problems: Problem[] }> {
  const stored = await getPurposes(sql, accountId, request.purposeUuids, limits);
  const purposes = [...stored, ...request.purposes];
  const text = toText(purposes);
  return { purposes, text, problems: checkInstall(request, purposes, text, limits) };
}

/** The purposes of a profile that is only read. Throws `not-found`, and `invalid-input` if they do not fit together. */
export async function readProfile(
  sql: Sql,
  accountId: number,
  asked: AskedPurposes,
  limits: QuotaSettings,
): Promise<Purpose[]> {
  const { purposes, problems } = await readAsked(sql, accountId, asked, limits);
  if (problems.length > 0) throw unfit(problems);
  return purposes;
}

type Installing = {
  accountId: number;
  uuids: string[];
  labels: readonly string[] | null;
  text: ProfileText;
  problems: Problem[];
  quotas: QuotaSettings;
  /** How long the devices may be silent at first; null: no limit. */
  silenceMs: number | null;
};

async function installWithin(
  tx: Sql,
  { accountId, uuids, labels, text, problems, quotas, silenceMs }: Installing,
): Promise<{ pId: string; targets: ProfileTarget[] }> {
  await lockUsage(tx, accountId);
  const targets = await claimTargets(tx, accountId, uuids, labels);
  if (targets.length !== uuids.length) {
    throw new DomainError('not-found', 'A device does not exist: nothing was installed.');
  }
  if (problems.length > 0) {
    throw unfit(problems);
  }
  await supersedeProfiles(tx, targets);
  const contentId = await storeContent(tx, accountId, text, quotas);
  const pId = await getProfileOf(tx, { accountId, contentId, changeId: null });
  const installs = targets.map(({ deviceId }) => ({
    deviceId,
    pId,
    formerId: null,
    label: null,
  }));
  await setPending(tx, accountId, installs, silenceMs);
  return { pId, targets };
}

/** Of an entry in the audit trail. */
const mostNames = 20;
const mostOfName = 100;

export const nameOf = ({ name, puId }: Purpose) => name ?? String(puId);

/** The names of a profile's purposes, for the audit trail: the first ones, cut. */
export const namesOf = (purposes: readonly Purpose[]): string[] =>
  purposes.slice(0, mostNames).map((purpose) => cutText(nameOf(purpose), mostOfName));

/** Removes duplicates. Anything that is not a UUID cannot be a device: `not-found`. */
function normalize(deviceAuthUuids: string[]): string[] {
  const uuids = [...new Set(deviceAuthUuids.map((uuid) => uuid.toLowerCase()))];
  if (uuids.every(isUuid)) return uuids;
  throw new DomainError('not-found', 'A device does not exist: nothing was installed.');
}

export function toText(purposes: Purpose[]): ProfileText {
  const text = JSON.stringify(purposes);
  return { text, bytes: Buffer.byteLength(text) };
}

/**
 * In the given order. Throws `not-found` if one does not exist. 256 purposes may have 64 MiB together, and one may be
 * named 256 times, so their lengths are checked first: `invalid-input` if that is too much for a profile.
 */
async function getPurposes(
  db: Sql,
  accountId: number,
  purposeUuids: string[],
  limits: QuotaSettings,
): Promise<Purpose[]> {
  if (purposeUuids.length === 0) return [];
  const ids = purposeUuids.map((id) => id.toLowerCase());
  const possible = [...new Set(ids.filter(isUuid))];
  const lengths = inOrder(ids, await listPurposeBytes(db, accountId, possible));
  const bytes = lengths.reduce((sum, length) => sum + length, 0);
  if (bytes > limits.profileBytes) throw unfit([tooLarge(bytes, limits)]);
  return inOrder(ids, await listPurposesById(db, accountId, possible));
}

function inOrder<T>(ids: string[], stored: Map<string, T>): T[] {
  return ids.map((id) => {
    const purpose = stored.get(id);
    if (purpose === undefined) {
      throw new DomainError('not-found', 'A purpose does not exist: nothing was installed.');
    }
    return purpose;
  });
}

// A large invalid array must not cause a larger answer.
const maxProblems = 100;

/** Everything that is wrong with these purposes as one profile. Stored purposes keep names that are too long. */
function checkInstall(
  request: AskedPurposes,
  purposes: Purpose[],
  { bytes }: ProfileText,
  limits: QuotaSettings,
): Problem[] {
  const pathOf = placeIn(request);
  const problems = [
    ...checkProfile(purposes, pathOf),
    ...request.purposes.flatMap((purpose, i) =>
      checkPurposeSizes(purpose, limits, `/purposes/${i}`),
    ),
    ...checkCosts(purposes, limits, pathOf),
  ];
  if (bytes > limits.profileBytes) problems.push(tooLarge(bytes, limits));
  return problems.slice(0, maxProblems);
}

/** The same for purposes whose form was checked. */
export const checkPurposes = (purposes: Purpose[], limits: QuotaSettings): Problem[] =>
  checkInstall({ purposeUuids: [], purposes }, purposes, toText(purposes), limits);

function tooLarge(bytes: number, { profileBytes }: QuotaSettings): Problem {
  const message = `a profile has at most ${profileBytes} bytes, this one has ${bytes}`;
  return { path: '', message };
}

/** The path of a purpose in the request: stored purposes come first. */
export function placeIn({ purposeUuids }: AskedPurposes) {
  const stored = purposeUuids.length;
  return (index: number) =>
    index < stored ? `/purposeUuids/${index}` : `/purposes/${index - stored}`;
}

/** The error if purposes do not fit together; nothing is installed. */
export const unfit = (problems: Problem[]) =>
  new DomainError('invalid-input', 'The purposes do not fit together.', { problems });

/**
 * How long a device may be silent in the first state of these purposes, in ms; null: no limit. The service first
 * evaluates a device that sends nothing after this time, so that a device that had already failed is noticed.
 */
export function firstSilenceMs([first]: readonly Purpose[]): number | null {
  const states = first?.states.filter(({ stId, isGlobal }) => isGlobal || stId === first.initStId);
  const silences = (states ?? []).flatMap(({ events }) =>
    events.flatMap((event) =>
      listCauses(event).flatMap(({ cause }) => cause.threshold?.noneForMs ?? []),
    ),
  );
  return silences.length > 0 ? Math.min(...silences) : null;
}

const maxAttempts = 5;

/**
 * Repeats a transaction that the database ended because of a deadlock: it locks the rows of many devices, and so does
 * ingest, in another order.
 */
async function retryDeadlock<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (attempt === maxAttempts || kindOf(error) !== 'serialization') throw error;
    }
  }
}

// With more devices than this, their senses are not read: that would take too long for a warning.
const maxWarnedDevices = 1_000;

type Installed = {
  purposes: Purpose[];
  deviceIds: number[];
  pathOf: PurposePath;
  /** Warnings about SMS that purposes send. */
  ofSms: () => Promise<Warning[]>;
  /** Explores them; absent: that is not wanted. */
  exploreWith?: (bounds: ReadonlyMap<string, Bounds>) => Promise<Warning[] | null>;
};

/** Warns if purposes may not work as intended on these devices. */
export async function warnOfInstall(
  db: Sql,
  { purposes, deviceIds, pathOf, ofSms, exploreWith }: Installed,
): Promise<Warned> {
  const senses =
    deviceIds.length > maxWarnedDevices
      ? undefined
      : [await listDeviceSenses(db, deviceIds, sensesOf(purposes))];
  const explored = exploreWith ? await exploreWith(boundsOf(senses?.flat() ?? [])) : [];
  const sms = await ofSms();
  const serviceOnly = findServiceOnly(purposes, pathOf);
  const ofOwnEngines =
    serviceOnly && warnOfOwnEngines(serviceOnly, await countOwnEngines(db, deviceIds));
  const ofEngine = await listWarningsYielding(purposes, senses, pathOf, yieldToEventLoop);
  const ofParts = [warnOfPolygons, warnOfActions].map((warnOf) => warnOf(purposes, pathOf));
  return warned(
    joinWarnings(ofEngine, ofOwnEngines ?? [], ...ofParts, sms, explored ?? []),
    explored,
  );
}

/** What the values of each sense can be on any of the devices; a sense without bounds on one has none. */
function boundsOf(senses: readonly Sense[]): ReadonlyMap<string, Bounds> {
  const bounds = new Map<string, Bounds>();
  for (const [sId, alike] of Map.groupBy(senses, (sense) => sense.sId))
    bounds.set(sId, {
      min: alike.every(({ min }) => min !== undefined)
        ? Math.min(...alike.map(({ min = 0 }) => min))
        : undefined,
      max: alike.every(({ max }) => max !== undefined)
        ? Math.max(...alike.map(({ max = 0 }) => max))
        : undefined,
    });
  return bounds;
}

/** All senses that any cause of these purposes reads. */
function sensesOf(purposes: Purpose[]): string[] {
  const senses = new Set<string>();
  for (const { states } of purposes)
    for (const { events } of states)
      for (const event of events) for (const { cause } of listCauses(event)) senses.add(cause.sId);
  return [...senses];
}

/** A member that a device's own engine may not support, and its path. */
type ServiceOnly = { path: string; member: string };

const members = ['forMs', 'noneForMs', 'over', 'maxAgeMs'] as const;

/**
 * The first member, about time or groups, that a device's own engine may not support; null if there is none. The
 * service itself watches events that wait only for silence, unless they change the state.
 */
function findServiceOnly(purposes: readonly Purpose[], pathOf: PurposePath): ServiceOnly | null {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, event] of events.entries()) {
        if (isWatchedAnyway(event)) continue;
        const at = `${pathOf(index)}/states/${s}/events/${e}`;
        if (event.anyOf) return { path: `${at}/anyOf`, member: 'anyOf' };
        for (const { cause, at: inEvent } of listCauses(event)) {
          const member = members.find((it) => cause.threshold?.[it] !== undefined);
          if (member) return { path: `${at}/${inEvent}/threshold/${member}`, member };
        }
      }
  return null;
}

function isWatchedAnyway(event: PurposeEvent): boolean {
  const { engine } = event.actions;
  const causes = listCauses(event).map(({ cause }) => cause);
  const isSilence = ({ threshold }: Cause) => threshold?.noneForMs !== undefined;
  const moves = engine?.gotoStId !== undefined || engine?.gotoPuId !== undefined;
  return !moves && causes.every(isSilence);
}

/** `count`: how many of the chosen devices evaluate their profiles themselves. */
function warnOfOwnEngines({ path, member }: ServiceOnly, count: number): Warning[] {
  if (count === 0) return [];
  const who =
    count === 1
      ? 'a chosen device evaluates its profiles itself'
      : `${count} of the chosen devices evaluate their profiles themselves`;
  return [warning('needs-service-engine', path, `${who}, and may not support ${member}`)];
}

const superseded = transition('superseded');

export type ProfileTarget = { deviceId: number; uuid: string };

/**
 * Locks the states of the account's devices with these uuids until the transaction ends, and invalidates what was
 * computed from them before. `labels`: only devices that have one of these; null: all.
 */
export async function claimTargets(
  tx: Sql,
  accountId: number,
  uuids: string[],
  labels: readonly string[] | null,
): Promise<ProfileTarget[]> {
  // In one order, so that two installations cannot deadlock.
  const { rows } = await tx.query<{ device_id: number; uuid: string }>(
    `
      with target as (
        select s.device_id, d.uuid
          from device d
          join device_state s on s.device_id = d.id
         where d.uuid = any($2::uuid[]) and d.account_id = $1
           and ($3::text[] is null or d.labels && $3)
         order by s.device_id
           for update of s
      )
      update device_state s
         set version = version + 1
        from target
       where s.device_id = target.device_id
      returning s.device_id, target.uuid`,
    [accountId, uuids, labels],
  );
  return rows.map((row) => ({ deviceId: row.device_id, uuid: row.uuid }));
}

/** No profile is pending any more on these devices, which are claimed. */
export async function supersedeProfiles(
  tx: Sql,
  targets: readonly Pick<ProfileTarget, 'deviceId'>[],
): Promise<void> {
  await tx.query(
    `
      update device_profile
         set state = ${superseded.to}, changed_at = now()
       where device_id = any($1::bigint[]) and state in ${superseded.from}`,
    [targets.map(({ deviceId }) => deviceId)],
  );
}

/** Evaluates devices after this many ms at the latest. Their states are locked (`claimTargets`). */
async function fallDue(
  tx: Sql,
  accountId: number,
  deviceIds: number[],
  inMs: number,
): Promise<void> {
  await tx.query(
    `insert into device_due as due (device_id, account_id, due_at)
     select device_id, $1, service_now() + $3 * interval '1 millisecond'
       from unnest($2::bigint[]) as device_id
     on conflict (device_id) do update
        set due_at = least(due.due_at, excluded.due_at), retry_at = null, failures = 0`,
    [accountId, deviceIds, inMs],
  );
}

/** A profile's purposes as they are stored. */
type ProfileText = { text: string; bytes: number };

/**
 * Stores a profile's content, which equal profiles of the account share, and returns its number. The account's usage is
 * locked (`lockUsage`). Throws `quota-exceeded`, and has then stored nothing.
 */
export async function storeContent(
  tx: Sql,
  accountId: number,
  text: ProfileText,
  quotas: QuotaSettings,
): Promise<number> {
  let contentId = await insertContent(tx, accountId, text, quotas);
  if (contentId === null) {
    // Unused profiles are removed only from time to time: remove them now, and try again.
    await removeUnused(tx, accountId);
    contentId = await insertContent(tx, accountId, text, quotas);
  }
  if (contentId !== null) return contentId;
  const adding = { profiles: 1, profileBytesTotal: text.bytes };
  throw await explainRefusal(tx, { accountId, quotas, adding });
}

/** Null if that exceeds a quota. */
async function insertContent(
  tx: Sql,
  accountId: number,
  { text, bytes }: ProfileText,
  quotas: Pick<QuotaSettings, 'profiles' | 'profileBytesTotal'>,
): Promise<number | null> {
  const { rows } = await tx.query<{ id: number }>(
    `
      with known as (
        select id from profile_content where account_id = $1 and hash = $3
      ), counted as (
        update account_usage u
           set profiles = u.profiles + 1, profile_bytes = u.profile_bytes + $4
         where u.account_id = $1
           and not exists (select from known)
           and u.profiles < ${limitOf('$1', 'profiles', '$5')}
           and u.profile_bytes + $4 <= ${limitOf('$1', 'profileBytesTotal', '$6')}
        returning u.account_id
      ), added as (
        insert into profile_content (account_id, hash, bytes, purposes)
        select account_id, $3, $4, $2::text::json from counted
        returning id
      )
      select id from known union all select id from added`,
    [accountId, text, hashOf(text), bytes, quotas.profiles, quotas.profileBytesTotal],
  );
  return rows[0]?.id ?? null;
}

/**
 * A new profile with this content; for a change of many devices the one that it has made already, if there is one. The
 * account's usage is locked (`lockUsage`).
 */
export async function getProfileOf(
  tx: Sql,
  {
    accountId,
    contentId,
    changeId,
    by,
  }: {
    accountId: number;
    contentId: number;
    changeId: string | null;
    /** Who installs it; absent: a rule of the service, or it is said later. */
    by?: WrittenBy | undefined;
  },
): Promise<string> {
  const { rows } = await tx.query<{ id: string; isNew: boolean }>(
    `
      with known as (
        select id from profile where change_id = $3 and content_id = $2
      ), added as (
        insert into profile (account_id, content_id, change_id)
        select $1, $2, $3 where not exists (select from known)
        returning id
      )
      select id, false as "isNew" from known union all select id, true from added`,
    [accountId, contentId, changeId],
  );
  const [row] = rows;
  if (!row) throw new Error('A profile was not stored.');
  if (row.isNew && by) await noteInstaller(tx, row.id, by);
  return row.id;
}

/** A profile for a device. */
export type PendingInstall = {
  deviceId: number;
  pId: string;
  /** The one that the device needs until now; null: none, or nothing is undone. */
  formerId: string | null;
  /** The label whose limits these are; null: none's. */
  label: string | null;
};

/**
 * These profiles are pending from now on, on devices that are claimed and have no other one pending
 * (`supersedeProfiles`). `silenceMs`: as in `Installing`.
 */
export async function setPending(
  tx: Sql,
  accountId: number,
  installs: readonly PendingInstall[],
  silenceMs: number | null,
): Promise<void> {
  const deviceIds = installs.map(({ deviceId }) => deviceId);
  if (silenceMs !== null) await fallDue(tx, accountId, deviceIds, silenceMs);
  await tx.query(
    `insert into device_profile (device_id, profile_id, former_id, label)
     select * from unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::text[])`,
    [
      deviceIds,
      installs.map(({ pId }) => pId),
      installs.map(({ formerId }) => formerId),
      installs.map(({ label }) => label),
    ],
  );
}

/** SHA-256 of a profile's text, by which its content is known. */
export const hashOf = (text: string) => createHash('sha256').update(text).digest();
