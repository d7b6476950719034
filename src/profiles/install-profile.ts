import { isUuid } from '../lib/uuid.ts';
import type { Bus } from '../bus/bus.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { warnOfActions } from '../contract/warn-of-actions.ts';
import { joinWarnings, type Warning } from '../contract/warning.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Problem } from '../errors.ts';
import { inTurns, nextTurn } from '../lib/in-turns.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { lockUsage } from '../quotas/queries.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { explainRefusal } from '../quotas/store-within.ts';
import { warnOfPolygons } from '../engine/warn-of-polygons.ts';
import { listWarningsInTurns } from '../engine/warnings-in-turns.ts';
import { firstSilenceMs } from './first-silence.ts';
import { checkInstall, placeIn, tooLarge } from './check-install.ts';
import { findServiceOnly, warnOfOwnEngines } from './warn-of-own-engines.ts';
import { claimTargets, fallDue } from './claim-targets.ts';
import { insertProfile } from './insert-profile.ts';
import {
  countOwnEngines,
  listPurposeBytes,
  listPurposesById,
  listDeviceSenses,
} from './queries.ts';
import { supersedeProfiles } from './claim-targets.ts';
import type { ProfileText } from './insert-profile.ts';
import type { ProfileTarget } from './claim-targets.ts';
import { removeUnused } from './remove-unused.ts';
import { retryDeadlock } from './retry-deadlock.ts';
import type { ProfileInstall } from './schema.ts';

export type InstallDeps = {
  db: Database;
  bus: Bus;
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  /** Warnings about SMS that purposes ask for. */
  warnOfSms: (accountId: number, purposes: Purpose[], pathOf: PurposePath) => Promise<Warning[]>;
};

// For more devices their senses are not read: that takes too long for a warning.
const maxWarnedDevices = 1_000;

/**
 * Installs a profile on devices: on all or, when a device or a purpose is not the account's
 * (`not-found`) or the purposes do not fit together (`invalid-input`), on none. Connected devices
 * are handed it at once. `labels`: a device without any of these is none of the caller's; null: all are.
 * `onInstalled` is the last thing in its transaction, which may be run again.
 */
export async function installProfile(
  { db, bus, quotas, limitsOf, warnOfSms }: InstallDeps,
  accountId: number,
  request: ProfileInstall,
  labels: readonly string[] | null = null,
  onInstalled: (tx: Sql, pId: string) => Promise<void> = async () => undefined,
): Promise<{ pId: string; warnings: Warning[] }> {
  const uuids = normalize(request.deviceAuthUuids);
  const limits = limitsOf(accountId);
  const purposes = [
    ...(await getPurposes(db, accountId, request.purposeUuids, limits)),
    ...request.purposes,
  ];
  const pathOf = placeIn(request);
  const text = toText(purposes);
  const problems = checkInstall(request, purposes, text, limits);
  const silenceMs = firstSilenceMs(purposes);
  const installing = { accountId, uuids, labels, text, problems, quotas, silenceMs };
  const install = async (tx: Sql) => {
    const installed = await installWithin(tx, installing);
    await onInstalled(tx, installed.pId);
    return installed;
  };
  const { pId, targets } = await retryDeadlock(() => db.transaction(install));
  await inTurns(targets, (device) => bus.publish('device', { ...device, push: 'profile' }));

  const deviceIds = targets.map(({ deviceId }) => deviceId);
  const senses =
    deviceIds.length > maxWarnedDevices
      ? undefined
      : [await listDeviceSenses(db, deviceIds, sensesOf(purposes))];
  const ofSms = await warnOfSms(accountId, purposes, pathOf);
  const serviceOnly = findServiceOnly(purposes, pathOf);
  const ofOwnEngines =
    serviceOnly && warnOfOwnEngines(serviceOnly, await countOwnEngines(db, deviceIds));
  const ofEngine = await listWarningsInTurns(purposes, senses, pathOf, nextTurn);
  const ofParts = [warnOfPolygons, warnOfActions].map((warnOf) => warnOf(purposes, pathOf));
  return { pId, warnings: joinWarnings(ofEngine, ofOwnEngines ?? [], ...ofParts, ofSms) };
}

/** All that any cause of these purposes reads. */
function sensesOf(purposes: Purpose[]): string[] {
  const senses = new Set<string>();
  for (const { states } of purposes)
    for (const { events } of states)
      for (const { causes } of events) for (const { sId } of causes) senses.add(sId);
  return [...senses];
}

type Installing = {
  accountId: number;
  uuids: string[];
  labels: readonly string[] | null;
  text: ProfileText;
  problems: Problem[];
  quotas: QuotaSettings;
  /** How long the devices may be silent at first; null: for ever. */
  silenceMs: number | null;
};

async function installWithin(
  tx: Sql,
  { accountId, uuids, labels, text, problems, quotas, silenceMs }: Installing,
): Promise<{ pId: string; targets: ProfileTarget[] }> {
  await lockUsage(tx, accountId);
  const targets = await claimTargets(tx, accountId, uuids, labels);
  if (targets.length !== uuids.length) {
    throw new DomainError('not-found', 'A device is not there: nothing was installed.');
  }
  if (problems.length > 0) {
    throw unfit(problems);
  }
  const deviceIds = targets.map(({ deviceId }) => deviceId);
  await supersedeProfiles(tx, deviceIds);
  if (silenceMs !== null) await fallDue(tx, accountId, deviceIds, silenceMs);
  const insert = () => insertProfile(tx, accountId, deviceIds, text, quotas);
  let pId = await insert();
  if (pId === null) {
    // Unused profiles are removed from time to time only: remove them now, and try again.
    await removeUnused(tx, accountId);
    pId = await insert();
  }
  if (pId === null) {
    const adding = { profiles: 1, profileBytesTotal: text.bytes };
    throw await explainRefusal(tx, { accountId, quotas, adding });
  }
  return { pId, targets };
}

/**
 * In the order given. Throws `not-found` when one is not there. 256 of them have 64 MiB together, and one
 * may be named 256 times: `invalid-input` before any of it is read where that is too much for a profile.
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
      throw new DomainError('not-found', 'A purpose is not there: nothing was installed.');
    }
    return purpose;
  });
}

const unfit = (problems: Problem[]) =>
  new DomainError('invalid-input', 'The purposes do not fit together.', { problems });

/** Each device once. What is no UUID names no device: `not-found`. */
function normalize(deviceAuthUuids: string[]): string[] {
  const uuids = [...new Set(deviceAuthUuids.map((uuid) => uuid.toLowerCase()))];
  if (uuids.every(isUuid)) return uuids;
  throw new DomainError('not-found', 'A device is not there: nothing was installed.');
}

function toText(purposes: Purpose[]): ProfileText {
  const text = JSON.stringify(purposes);
  return { text, bytes: Buffer.byteLength(text) };
}
