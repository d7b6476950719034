import type { DoneBy } from '../audit/audit.ts';
import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { WrittenBy } from '../versions/versions.ts';
import {
  claimTargets,
  getProfileOf,
  type PendingInstall,
  type ProfileTarget,
  setPending,
  storeContent,
  supersedeProfiles,
  toText,
} from './install.ts';
import { type ChangedLimits, listFollowing, putBack, takeLabelLimits } from './label-limits.ts';
import { hexOf, type PlannedInstall } from './plan.ts';
import { needed } from './queries.ts';

/*
 * Other profiles for many devices, as a job: the same purposes for all, or other limits in those that they have, or
 * what each of them had before such a job. A device's profile is the pending one, or else the current one. A device
 * that has got another one by then keeps it.
 */

/** What a job does, as it is stored with it. `changeId` is in the profiles that it makes. */
export type ProfileChange =
  | { changeId: string; installs: PlannedInstall[] }
  /** As jobs of earlier versions have it: one install. */
  | ({ changeId: string } & PlannedInstall)
  /** Brings back what the devices had before that change. */
  | { changeId: string; back: string; limits?: ChangedLimits }
  /** Gives devices the limits of their labels; also those that have limits of their own, or not. */
  | { changeId: string; byLabel: 'also-own' | 'not-own'; limits?: ChangedLimits };

type Newest = {
  deviceId: number;
  pId: string;
  contentId: number;
  /** Of the content, in hex. */
  hash: string;
  /** The change that installed it; null: none. */
  changeId: string | null;
  formerId: string | null;
  /** Null: it is not stored any more. */
  formerContentId: number | null;
  /** The label whose limits the former one was; null: none's. */
  formerLabel: string | null;
  /** The change that said that it is the limits of another label; null: none did. */
  relabelledBy: string | null;
  /** Whether the change that is taken back installed anything on it that it has not refused. */
  wasChanged: boolean;
};

/** As SQL: the change in this parameter installed something on the device that it has not refused. */
const wasChanged = (device: string, change: string) => `
  exists (select from profile q
            join device_profile o on o.profile_id = q.id
           where q.change_id = ${change} and o.device_id = ${device} and o.state <> 'rejected')`;

/** The profiles of these devices; those without one are missing. `back`: the change that is taken back. */
export async function listNewest(
  sql: Sql,
  deviceIds: readonly number[],
  back: string | null = null,
): Promise<Map<number, Newest>> {
  const { rows } = await sql.query<Newest>(
    `
      select distinct on (dp.device_id) dp.device_id as "deviceId", p.id as "pId", c.id as "contentId",
             encode(c.hash, 'hex') as hash, p.change_id as "changeId", dp.former_id as "formerId",
             f.content_id as "formerContentId", w.label as "formerLabel", dp.relabelled_by as "relabelledBy",
             ${wasChanged('dp.device_id', '$2')} as "wasChanged"
        from device_profile dp
        join profile p on p.id = dp.profile_id
        join profile_content c on c.id = p.content_id
        left join profile f on f.id = dp.former_id
        left join device_profile w on w.device_id = dp.device_id and w.profile_id = dp.former_id
       where dp.device_id = any($1::bigint[]) and dp.state in ${needed}
       order by dp.device_id, dp.state = 'current'`,
    [deviceIds, back],
  );
  return new Map(rows.map((row) => [row.deviceId, row]));
}

/** What a change does with a device: it installs, or leaves it what it has. */
export type Outcome = 'install' | 'unchanged' | 'changed';

const emptyHash = hexOf('[]');

/**
 * What a change that installs these does with a device, and which of them it installs. A profile without purposes is
 * none.
 */
export function outcomeOf<I extends Pick<PlannedInstall, 'to' | 'from'>>(
  installs: readonly I[],
  newest: Pick<Newest, 'hash'> | undefined,
): { outcome: Outcome; install?: I } {
  const hash = newest?.hash;
  const install = installs.find(
    ({ from }) =>
      from === undefined || from === (hash === undefined || hash === emptyHash ? null : hash),
  );
  if (!install) return { outcome: 'changed' };
  const isThere = install.from === undefined && install.to === hash;
  return isThere ? { outcome: 'unchanged' } : { outcome: 'install', install };
}

/**
 * Of one that takes the change `back` back. `relabel`: the device keeps its profile, as the limits that it was before.
 */
function outcomeOfBack(
  back: string,
  newest: Newest | undefined,
): Outcome | 'forgotten' | 'relabel' {
  if (newest?.relabelledBy === back) return 'relabel';
  if (!newest?.wasChanged) return 'unchanged';
  if (newest.changeId !== back) return 'changed';
  return newest.formerId !== null && newest.formerContentId === null ? 'forgotten' : 'install';
}

/**
 * Plans to take back what a change did to these devices, which it processed. Puts the limits of labels back that it
 * replaced, unless somebody has replaced them since. The account's usage is locked. `uuids`: whom the change changed,
 * and who follows the limits of its label.
 */
export async function planBack(
  tx: Sql,
  {
    accountId,
    uuids,
    change: { changeId: back, limits: changed },
    changeId,
    by,
  }: {
    accountId: number;
    uuids: readonly string[];
    change: { changeId: string; limits?: ChangedLimits };
    changeId: string;
    by: DoneBy;
  },
): Promise<{ change: ProfileChange; devices: string[] }> {
  const limits = changed && (await putBack(tx, accountId, changed, by));
  const { rows } = await tx.query<{ uuid: string }>(
    `select each.uuid
       from unnest($2::uuid[]) with ordinality as each (uuid, place)
       join device d on d.uuid = each.uuid and d.account_id = $1
      where ${wasChanged('d.id', '$3')}
         or exists (select from device_profile r where r.device_id = d.id and r.relabelled_by = $3)
      order by each.place`,
    [accountId, uuids, back],
  );
  const devices = rows.map(({ uuid }) => uuid);
  if (!limits) return { change: { changeId, back }, devices };
  const following = await listFollowing(tx, accountId, limits);
  return { change: { changeId, back, limits }, devices: [...new Set([...devices, ...following])] };
}

type Piece = { accountId: number; uuids: string[]; labels: string[] | null };
type Failed = { deviceAuthUuid: string; reason: string };
/** It keeps what it had: another profile than the change was for, or what it would get. */
type Kept = { deviceAuthUuid: string; reason: 'changed' | 'unchanged' };
type Changing = { bus: Bus; quotas: QuotaSettings; by: WrittenBy };
type Done = { failed: Failed[]; kept: Kept[]; after: () => void };

/** Does it for some devices of a job, whose account's usage is locked. `after`: what to do after the commit. */
export async function changeProfiles(
  tx: Sql,
  deps: Changing,
  piece: Piece,
  change: ProfileChange,
): Promise<Done> {
  if ('byLabel' in change) return giveLabelLimits(tx, deps, piece, change);
  if ('back' in change) return bringBack(tx, deps, piece, change);
  const installs = 'installs' in change ? change.installs : [change];
  const { accountId, uuids, labels } = piece;
  const claimed = await claimTargets(tx, accountId, uuids, labels);
  const newest = await listNewest(tx, idsOf(claimed));
  const found = claimed.map((target) => {
    const { outcome, install } = outcomeOf(installs, newest.get(target.deviceId));
    return { ...target, outcome, install };
  });
  const changing = found.filter(({ outcome }) => outcome === 'install');
  await supersedeProfiles(tx, changing);
  for (const [install, those] of Map.groupBy(changing, (each) => each.install)) {
    if (!install) continue;
    const { pId, silenceMs } = install;
    const pending = those.map(({ deviceId }) => {
      return { deviceId, pId, formerId: newest.get(deviceId)?.pId ?? null, label: null };
    });
    await setPending(tx, accountId, pending, silenceMs);
  }
  const outcomes = new Map(found.map(({ uuid, outcome }) => [uuid, outcome]));
  return { ...doneOf(uuids, outcomes), after: () => tellOf(deps.bus, changing) };
}

const idsOf = (targets: readonly ProfileTarget[]) => targets.map(({ deviceId }) => deviceId);

/** Devices without an outcome do not exist. */
function doneOf(
  uuids: readonly string[],
  outcomes: ReadonlyMap<string, string>,
): Pick<Done, 'failed' | 'kept'> {
  const failed: Failed[] = [];
  const kept: Kept[] = [];
  for (const deviceAuthUuid of uuids) {
    const reason = outcomes.get(deviceAuthUuid) ?? 'no-such-device';
    if (reason === 'changed' || reason === 'unchanged') kept.push({ deviceAuthUuid, reason });
    else if (reason !== 'install' && reason !== 'relabel') failed.push({ deviceAuthUuid, reason });
  }
  return { failed, kept };
}

async function giveLabelLimits(
  tx: Sql,
  { bus, by }: Changing,
  { accountId, uuids, labels }: Piece,
  { changeId, byLabel }: Extract<ProfileChange, { byLabel: string }>,
): Promise<Done> {
  const isForced = byLabel === 'also-own';
  const taken = await takeLabelLimits(tx, { accountId, uuids, labels, changeId, isForced, by });
  const there = await listThere(tx, { accountId, uuids, labels });
  const outcomes = new Map([
    ...there.map(({ uuid }) => [uuid, 'unchanged'] as const),
    ...taken.map(({ uuid }) => [uuid, 'install'] as const),
  ]);
  return { ...doneOf(uuids, outcomes), after: () => tellOf(bus, taken) };
}

async function bringBack(
  tx: Sql,
  { bus, quotas, by }: Changing,
  { accountId, uuids, labels }: Piece,
  { changeId, back, limits }: Extract<ProfileChange, { back: string }>,
): Promise<Done> {
  const claimed = await claimTargets(tx, accountId, uuids, labels);
  const newest = await listNewest(tx, idsOf(claimed), back);
  const outcomes = new Map<string, string>(
    claimed.map(({ deviceId, uuid }) => [uuid, outcomeOfBack(back, newest.get(deviceId))]),
  );
  const having = (outcome: string) => claimed.filter(({ uuid }) => outcomes.get(uuid) === outcome);
  const changing = having('install');
  const pIds = await formerProfiles(tx, { accountId, quotas, changeId, by }, changing, newest);
  const installs: PendingInstall[] = [];
  for (const { deviceId, uuid } of changing) {
    const pId = pIds.get(deviceId);
    if (pId === undefined) outcomes.set(uuid, 'quota-exceeded');
    else {
      const { pId: formerId = null, formerLabel: label = null } = newest.get(deviceId) ?? {};
      installs.push({ deviceId, pId, formerId, label });
    }
  }
  await supersedeProfiles(tx, installs);
  // What is brought back may wait for time: a tick finds out until when.
  if (installs.length > 0) await setPending(tx, accountId, installs, 0);
  await relabelBack(tx, idsOf(having('relabel')), { back, changeId });
  // Devices that got the label since then follow the limits that it has again.
  const others = having('unchanged').map(({ uuid }) => uuid);
  const following = limits
    ? await takeLabelLimits(tx, { accountId, uuids: others, labels, changeId, by })
    : [];
  for (const { uuid } of following) outcomes.set(uuid, 'install');
  const told = [...changing.filter(({ deviceId }) => pIds.has(deviceId)), ...following];
  return { ...doneOf(uuids, outcomes), after: () => tellOf(bus, told) };
}

/** The profiles of these devices are the limits again that they were before the change `back`. */
async function relabelBack(
  tx: Sql,
  deviceIds: readonly number[],
  { back, changeId }: { back: string; changeId: string },
) {
  await tx.query(
    `update device_profile
        set label = relabelled_from, relabelled_from = label, relabelled_by = $3
      where device_id = any($1::bigint[]) and relabelled_by = $2`,
    [deviceIds, back, changeId],
  );
}

/** Those that the account has, with one of the labels (null: any). */
export async function listThere(
  sql: Sql,
  {
    accountId,
    uuids,
    labels,
  }: { accountId: number; uuids: readonly string[]; labels: readonly string[] | null },
): Promise<ProfileTarget[]> {
  const { rows } = await sql.query<ProfileTarget>(
    `select id as "deviceId", uuid from device
      where account_id = $1 and uuid = any($2::uuid[]) and ($3::text[] is null or labels && $3)`,
    [accountId, uuids, labels],
  );
  return rows;
}

/** Connected devices receive the profile that is pending on them. */
export function tellOf(bus: Bus, devices: readonly ProfileTarget[]): void {
  for (const { deviceId, uuid } of devices)
    bus.publish('device', { deviceId, uuid, push: 'profile' });
}

/** A profile with the former purposes of each of these devices. Those that there is no room for are missing. */
async function formerProfiles(
  tx: Sql,
  {
    accountId,
    quotas,
    changeId,
    by,
  }: { accountId: number; quotas: QuotaSettings; changeId: string; by: WrittenBy },
  devices: readonly ProfileTarget[],
  newest: ReadonlyMap<number, Newest>,
): Promise<Map<number, string>> {
  const byContent = Map.groupBy(
    devices,
    ({ deviceId }) => newest.get(deviceId)?.formerContentId ?? null,
  );
  const pIds = new Map<number, string>();
  for (const [known, those] of byContent) {
    const contentId = known ?? (await storeEmpty(tx, accountId, quotas));
    if (contentId === null) continue;
    const pId = await getProfileOf(tx, { accountId, contentId, changeId, by });
    for (const { deviceId } of those) pIds.set(deviceId, pId);
  }
  return pIds;
}

/** A profile without purposes, for devices that had none: only a profile makes them forget another. Null: no room. */
const storeEmpty = (tx: Sql, accountId: number, quotas: QuotaSettings) =>
  storeContent(tx, accountId, toText([]), quotas).catch((error: unknown) => {
    if (error instanceof DomainError && error.code === 'quota-exceeded') return null;
    throw error;
  });
