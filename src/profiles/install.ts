import type { Bus } from '../bus/bus.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';
import type { Warning } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError, type Problem } from '../errors.ts';
import { inTurns } from '../lib/in-turns.ts';
import { isUuid } from '../lib/uuid.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { lockUsage } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { explainRefusal } from '../quotas/store-within.ts';
import { checkInstall, placeIn, unfit } from './check-install.ts';
import { claimTargets, fallDue, type ProfileTarget, supersedeProfiles } from './claim-targets.ts';
import { firstSilenceMs } from './first-silence.ts';
import { getPurposes } from './get-purposes.ts';
import { insertProfile, type ProfileText } from './insert-profile.ts';
import { removeUnused } from './remove-unused.ts';
import { retryDeadlock } from './retry-deadlock.ts';
import type { ProfileInstall } from './schema.ts';
import { warnOfInstall } from './warn-of-install.ts';

/*
 * The way of a profile, from the request to the device's answer. Each step is the function of that name.
 *
 *   src/profiles
 *    1. installProfile      install.ts     checks purposes and devices; then one transaction:
 *       claimTargets        claim-targets.ts       nobody else changes where these devices stand meanwhile
 *       supersedeProfiles   claim-targets.ts       they wait for no other profile
 *       insertProfile       insert-profile.ts      the profile is stored, and pending on each of them
 *    2. publish             bus                    after the commit: every process is told of these devices
 *   connector
 *    3. due                 device/downlink-queue  asks what a connected device is to be sent
 *       due                 downlinks.ts           (here) the profile that is pending
 *       send                mqtt/deliver.ts        as a message; over HTTP the device asks for it (http/long-poll.ts)
 *    4. delivered           downlinks.ts           the device has acknowledged it: it is sent no more
 *   src/ingest: the device's answer goes the way of a message (ingest/ingest.ts)
 *    5. applyAnswer         rules/profile.ts       the profile becomes current (becomeCurrent), or is rejected
 *       saveProfileAnswers  save-answers.ts        (here) stored in the transaction that acknowledges the answer
 */

export type InstallDeps = {
  db: Database;
  bus: Bus;
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  /** Warnings about SMS that purposes ask for. */
  warnOfSms: (accountId: number, purposes: Purpose[], pathOf: PurposePath) => Promise<Warning[]>;
};

/**
 * Installs a profile on devices: on all or, when a device or a purpose is not the account's
 * (`not-found`) or the purposes do not fit together (`invalid-input`), on none. Connected devices
 * are handed it at once. `labels`: a device without any of these is not the caller's; null: all are.
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
  const ofSms = () => warnOfSms(accountId, purposes, pathOf);
  return { pId, warnings: await warnOfInstall(db, { purposes, deviceIds, pathOf, ofSms }) };
}

type Installing = {
  accountId: number;
  uuids: string[];
  labels: readonly string[] | null;
  text: ProfileText;
  problems: Problem[];
  quotas: QuotaSettings;
  /** How long the devices may be silent at first; null: without a limit. */
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
