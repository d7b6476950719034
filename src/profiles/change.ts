import type { Bus } from '../bus/bus.ts';
import { Purpose } from '../contract/purpose.ts';
import type { Warning } from '../contract/warnings.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError, type Problem } from '../errors.ts';
import type { LimitsOf } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { WrittenBy } from '../versions/versions.ts';
import {
  checkPurposes,
  claimTargets,
  firstSilenceMs,
  getProfileOf,
  hashOf,
  type InstallDeps,
  nameOf,
  namesOf,
  type PendingInstall,
  placeIn,
  type ProfileTarget,
  readAsked,
  setPending,
  storeContent,
  supersedeProfiles,
  toText,
  unfit,
  warnOfInstall,
} from './install.ts';
import { takeLabelLimits } from './label-limits.ts';
import { needed } from './queries.ts';

/*
 * Other profiles for many devices, as a job: the same purposes for all, or other limits in those that they have, or
 * what each of them had before such a job. A device's profile is the pending one, or else the current one. A device
 * that has got another one by then keeps it.
 */

/** Numbers to put in the place of others, in one cause of an event. `cause`: counted from 0. */
type LimitChange = {
  puId: number;
  stId: number;
  evId: number;
  cause: number;
  threshold?: Record<string, number> | undefined;
  thresholds?: Record<string, number> | undefined;
  /** The event's name, which may contain the numbers: only `from` is replaced. */
  name?: { from: string; to: string } | undefined;
};

export type AskedChange =
  | { ifPId: string; changes: readonly LimitChange[] }
  | { purposeUuids: string[]; purposes: Purpose[] };

/** What a job does, as it is stored with it. `changeId` is in the profiles that it makes. */
export type ProfileChange =
  | {
      changeId: string;
      pId: string;
      /** The hash of the new content, in hex. */
      to: string;
      /** Only in the place of the content with this hash. Absent: of any. */
      from?: string;
      silenceMs: number | null;
    }
  /** Brings back what the devices had before that change. */
  | { changeId: string; back: string }
  /** Gives devices the limits of their labels; also those that have limits of their own, or not. */
  | { changeId: string; byLabel: 'also-own' | 'not-own' };

/** A number that changes, or the name of an event. */
type LimitDifference = Pick<LimitChange, 'puId' | 'stId' | 'evId'> &
  (
    | { cause: number; sId: string; limit: string; from: number; to: number }
    | { name: { from: string; to: string } }
  );

type Planned = { text: string; from?: string; purposes: Purpose[]; differences: LimitDifference[] };

/**
 * What is installed, and in the place of what. Throws `not-found`, and `invalid-input` if a limit names what is not
 * there, or if the purposes are not valid together.
 */
async function plan(
  sql: Sql,
  accountId: number,
  asked: AskedChange,
  limits: QuotaSettings,
): Promise<Planned> {
  if (!('ifPId' in asked)) {
    const { purposes, text, problems } = await readAsked(sql, accountId, asked, limits);
    if (problems.length > 0) throw unfit(problems);
    return { text: text.text, purposes, differences: [] };
  }
  const { rows } = await sql.query<{ text: string }>(
    `select c.purposes::text as text
       from profile p
       join profile_content c on c.id = p.content_id
      where p.account_id = $1 and p.id = $2`,
    [accountId, asked.ifPId],
  );
  const old = rows[0]?.text;
  if (old === undefined)
    throw new DomainError('not-found', 'No such profile, or no device needs it any more.');
  const purposes = JSON.parse(old) as Purpose[];
  const differences: LimitDifference[] = [];
  const problems = asked.changes.flatMap((change, n) =>
    changeLimit(purposes, change, `/changes/${n}`, differences),
  );
  if (problems.length === 0) problems.push(...problemsOf(purposes, limits));
  if (problems.length > 0)
    throw new DomainError('invalid-input', 'The limits cannot be changed like this.', { problems });
  return { text: JSON.stringify(purposes), from: hexOf(old), purposes, differences };
}

const hexOf = (text: string) => hashOf(text).toString('hex');

/**
 * Plans a job and stores the profile that it installs, in the transaction that stores the job; the account's usage is
 * locked. `names`: of its purposes. Throws as `plan` does, and `quota-exceeded`.
 */
export async function planChange(
  tx: Sql,
  { quotas, limitsOf }: { quotas: QuotaSettings; limitsOf: LimitsOf },
  {
    accountId,
    asked,
    changeId,
    by,
  }: { accountId: number; asked: AskedChange; changeId: string; by: WrittenBy },
): Promise<{ change: ProfileChange; names: string[] }> {
  const { text, from, purposes } = await plan(tx, accountId, asked, limitsOf(accountId));
  const contentId = await storeContent(tx, accountId, toText(purposes), quotas);
  const pId = await getProfileOf(tx, { accountId, contentId, changeId, by });
  const silenceMs = firstSilenceMs(purposes);
  return {
    change: { changeId, pId, to: hexOf(text), ...(from === undefined ? {} : { from }), silenceMs },
    names: namesOf(purposes),
  };
}

/** Changes in place, and adds to `differences`. Returns what is wrong: only what is there can be replaced. */
function changeLimit(
  purposes: Purpose[],
  { puId, stId, evId, cause: index, name, ...numbers }: LimitChange,
  path: string,
  differences: LimitDifference[],
): Problem[] {
  const state = purposes.find((one) => one.puId === puId)?.states.find((one) => one.stId === stId);
  const event = state?.events.find((one) => one.evId === evId);
  const cause = event?.causes[index];
  if (!event || !cause) return [{ path, message: 'the profile has no such cause' }];
  const at = { puId, stId, evId };
  const problems = (['threshold', 'thresholds'] as const).flatMap((member) =>
    Object.entries(numbers[member] ?? {}).flatMap(([limit, to]) => {
      const known = (cause[member] ?? {}) as Record<string, unknown>;
      const from = Object.hasOwn(known, limit) ? known[limit] : undefined;
      if (typeof from !== 'number')
        return [{ path: `${path}/${member}/${limit}`, message: 'the cause has no such number' }];
      known[limit] = to;
      if (from !== to) differences.push({ ...at, cause: index, sId: cause.sId, limit, from, to });
      return [];
    }),
  );
  if (name === undefined) return problems;
  if ((event.name ?? '') !== name.from)
    return [...problems, { path: `${path}/name/from`, message: 'the event has another name' }];
  event.name = name.to;
  if (name.from !== name.to) differences.push({ ...at, name });
  return problems;
}

function problemsOf(purposes: Purpose[], limits: QuotaSettings): Problem[] {
  const invalid = purposes.flatMap((purpose, n) =>
    (Purpose.safeParse(purpose).error?.issues ?? []).map(({ path, message }) => ({
      path: ['', 'purposes', n, ...path.map(String)].join('/'),
      message,
    })),
  );
  return invalid.length > 0 ? invalid : checkPurposes(purposes, limits);
}

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
  /** Whether the change that is taken back installed anything on it that it has not refused. */
  wasChanged: boolean;
};

/** The profiles of these devices; those without one are missing. `back`: the change that is taken back. */
async function listNewest(
  sql: Sql,
  deviceIds: readonly number[],
  back: string | null = null,
): Promise<Map<number, Newest>> {
  const { rows } = await sql.query<Newest>(
    `
      select distinct on (dp.device_id) dp.device_id as "deviceId", p.id as "pId", c.id as "contentId",
             encode(c.hash, 'hex') as hash, p.change_id as "changeId", dp.former_id as "formerId",
             f.content_id as "formerContentId", w.label as "formerLabel",
             exists (select from profile q
                       join device_profile o on o.profile_id = q.id
                      where q.change_id = $2 and o.device_id = dp.device_id
                        and o.state <> 'rejected') as "wasChanged"
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

/** What a change does with a device: it installs, leaves it as it is, or fails with this reason. */
type Outcome = 'install' | 'unchanged' | 'changed';

/** Of one that installs the content `to`, everywhere or only in the place of the content `from`. */
function outcomeOf(
  { to, from }: { to: string; from?: string },
  newest: Newest | undefined,
): Outcome {
  if (from === undefined) return newest?.hash === to ? 'unchanged' : 'install';
  return newest?.hash === from ? 'install' : 'changed';
}

/** Of one that takes the change `back` back. */
function outcomeOfBack(back: string, newest: Newest | undefined): Outcome | 'forgotten' {
  if (!newest?.wasChanged) return 'unchanged';
  if (newest.changeId !== back) return 'changed';
  return newest.formerId !== null && newest.formerContentId === null ? 'forgotten' : 'install';
}

type Piece = { accountId: number; uuids: string[]; labels: string[] | null };
type Failed = { deviceAuthUuid: string; reason: string };

/** Does it for some devices of a job, whose account's usage is locked. `after`: what to do after the commit. */
export async function changeProfiles(
  tx: Sql,
  { bus, quotas, by }: { bus: Bus; quotas: QuotaSettings; by: WrittenBy },
  { accountId, uuids, labels }: Piece,
  change: ProfileChange,
): Promise<{ failed: Failed[]; after: () => void }> {
  if ('byLabel' in change) {
    const { changeId, byLabel } = change;
    const isForced = byLabel === 'also-own';
    const of = { accountId, uuids, labels, changeId, isForced, by };
    const taken = await takeLabelLimits(tx, of);
    return { failed: [], after: () => tellOf(bus, taken) };
  }
  const isBack = 'back' in change;
  const claimed = await claimTargets(tx, accountId, uuids, labels);
  const newest = await listNewest(
    tx,
    claimed.map(({ deviceId }) => deviceId),
    isBack ? change.back : null,
  );
  const outcomes = new Map<string, string>(
    claimed.map(({ deviceId, uuid }) => {
      const own = newest.get(deviceId);
      return [uuid, isBack ? outcomeOfBack(change.back, own) : outcomeOf(change, own)];
    }),
  );
  const changing = claimed.filter(({ uuid }) => outcomes.get(uuid) === 'install');
  const pIds = await profilesFor(tx, { accountId, quotas, change, by }, changing, newest);
  const installs: PendingInstall[] = [];
  for (const { deviceId, uuid } of changing) {
    const pId = pIds.get(deviceId);
    if (pId === undefined) outcomes.set(uuid, 'quota-exceeded');
    else {
      const { pId: formerId = null, formerLabel = null } = newest.get(deviceId) ?? {};
      installs.push({ deviceId, pId, formerId, label: isBack ? formerLabel : null });
    }
  }
  // What is brought back may wait for time: a tick finds out until when.
  const silenceMs = isBack ? 0 : change.silenceMs;
  await supersedeProfiles(tx, installs);
  if (installs.length > 0) await setPending(tx, accountId, installs, silenceMs);
  const failed = uuids.flatMap((uuid) => {
    const reason = outcomes.get(uuid) ?? 'no-such-device';
    return reason === 'install' || reason === 'unchanged' ? [] : [{ deviceAuthUuid: uuid, reason }];
  });
  const told = changing.filter(({ deviceId }) => pIds.has(deviceId));
  return { failed, after: () => tellOf(bus, told) };
}

/** Connected devices receive the profile that is pending on them. */
export function tellOf(bus: Bus, devices: readonly ProfileTarget[]): void {
  for (const { deviceId, uuid } of devices)
    bus.publish('device', { deviceId, uuid, push: 'profile' });
}

/** The profile for each of these devices. Those that there is no room for are missing. */
async function profilesFor(
  tx: Sql,
  {
    accountId,
    quotas,
    change,
    by,
  }: {
    accountId: number;
    quotas: QuotaSettings;
    by: WrittenBy;
    change: Exclude<ProfileChange, { byLabel: string }>;
  },
  devices: readonly ProfileTarget[],
  newest: ReadonlyMap<number, Newest>,
): Promise<Map<number, string>> {
  if (!('back' in change)) return new Map(devices.map(({ deviceId }) => [deviceId, change.pId]));
  const { changeId } = change;
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

/** A purpose of a profile, by its number and name. */
type Named = { puId: number; name: string };

type ChangePreview = {
  differences: LimitDifference[];
  warnings: Warning[];
  /** Those of most devices first; what goes, comes and stays if the new one is installed. */
  profiles: {
    pId: string | null;
    devices: number;
    goes?: Named[];
    comes?: Named[];
    stays?: Named[];
  }[];
  devices: {
    deviceAuthUuid: string;
    outcome: Outcome | 'no-such-device';
    profile: number;
  }[];
};

/** Contents of profiles that a preview reads, together. */
const mostReadBytes = 4 * 1024 * 1024;

/** What `planChange` and a job would do with these devices, as far as can be told now. Throws as `plan` does. */
export async function previewChange(
  { db: sql, limitsOf, warnOfSms }: Pick<InstallDeps, 'db' | 'limitsOf' | 'warnOfSms'>,
  {
    accountId,
    uuids,
    labels,
  }: { accountId: number; uuids: readonly string[]; labels: readonly string[] | null },
  asked: AskedChange,
): Promise<ChangePreview> {
  const { text, from, purposes, differences } = await plan(
    sql,
    accountId,
    asked,
    limitsOf(accountId),
  );
  const change = { to: hexOf(text), ...(from === undefined ? {} : { from }) };
  const { rows } = await sql.query<ProfileTarget>(
    `select id as "deviceId", uuid from device
      where account_id = $1 and uuid = any($2::uuid[]) and ($3::text[] is null or labels && $3)`,
    [accountId, uuids, labels],
  );
  const ids = new Map(rows.map(({ uuid, deviceId }) => [uuid, deviceId]));
  const newest = await listNewest(sql, [...ids.values()]);
  const found = uuids.map((uuid) => ({
    uuid,
    isThere: ids.has(uuid),
    newest: newest.get(ids.get(uuid) ?? 0),
  }));
  const there = found.filter(({ isThere }) => isThere);
  const groups = [...Map.groupBy(there, (each) => each.newest?.contentId ?? null)].toSorted(
    ([, one], [, other]) => other.length - one.length,
  );
  const places = new Map(groups.map(([contentId], place) => [contentId, place]));
  const contents =
    'ifPId' in asked
      ? new Map<number, Purpose[]>()
      : await readContents(
          sql,
          groups.flatMap(([id]) => id ?? []),
        );
  const pathOf = placeIn('ifPId' in asked ? { purposeUuids: [], purposes } : asked);
  return {
    differences,
    warnings: await warnOfInstall(sql, {
      purposes,
      deviceIds: [...ids.values()],
      pathOf,
      ofSms: () => warnOfSms(accountId, purposes, pathOf),
    }),
    profiles: groups.map(([contentId, those]) => {
      const known = contentId === null ? [] : contents.get(contentId);
      const isSaid = known !== undefined && !('ifPId' in asked);
      return {
        pId: those[0]?.newest?.pId ?? null,
        devices: those.length,
        ...(isSaid ? differenceOf(known, purposes) : {}),
      };
    }),
    devices: found.map(({ uuid, isThere, newest: own }) => {
      const outcome = isThere ? outcomeOf(change, own) : ('no-such-device' as const);
      return {
        deviceAuthUuid: uuid,
        outcome,
        profile: isThere ? (places.get(own?.contentId ?? null) ?? -1) : -1,
      };
    }),
  };
}

/** The first of these contents that fit into the bytes of a preview. */
async function readContents(
  sql: Sql,
  contentIds: readonly number[],
): Promise<Map<number, Purpose[]>> {
  const { rows } = await sql.query<{ id: number; purposes: Purpose[] }>(
    `
      select c.id, c.purposes
        from profile_content c
        join (select id, sum(c.bytes) over (order by wanted.place) as so_far
                from unnest($1::bigint[]) with ordinality as wanted (id, place)
                join profile_content c using (id)) sized using (id)
       where so_far <= ${mostReadBytes}`,
    [contentIds],
  );
  return new Map(rows.map(({ id, purposes }) => [id, purposes]));
}

function differenceOf(before: readonly Purpose[], after: readonly Purpose[]) {
  const [old, young] = [before, after].map(
    (some) => new Set(some.map((one) => JSON.stringify(one))),
  );
  const named = (some: readonly Purpose[], isMeant: (text: string) => boolean) =>
    some
      .filter((one) => isMeant(JSON.stringify(one)))
      .map((one) => ({ puId: one.puId, name: nameOf(one) }));
  return {
    goes: named(before, (text) => !young?.has(text)),
    comes: named(after, (text) => !old?.has(text)),
    stays: named(after, (text) => old?.has(text) === true),
  };
}
