import { z } from 'zod';
import { type Actor, type DoneBy, doneBy, insertEntry } from '../audit/audit.ts';
import { Label } from '../contract/values.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Keep } from '../http/answer.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleIds, timestamp, uuidParam } from '../http/schema.ts';
import type { Clock } from '../lib/clock-readings.ts';
import { createFairRunner, type LimitsOf } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { WrittenBy } from '../versions/versions.ts';
import {
  firstSilenceMs,
  getProfileOf,
  type ProfileTarget,
  claimTargets,
  readAsked,
  setPending,
  storeContent,
  supersedeProfiles,
  toText,
  unfit,
} from './install.ts';
import { needed } from './queries.ts';

/*
 * A label may have limits: a stored purpose, which devices with the label take as their profile. Of several such labels
 * the first in the account's order counts. A device takes them when its labels change, and when the account's limits
 * do, unless somebody has installed another profile on it: those are its own limits, and stay. A device that loses the
 * label keeps them until another label has limits for it: nothing ends to be watched because of a label.
 */

/**
 * Gives devices the limits of their labels, if they have none of their own. Returns the devices that have them now and
 * did not before, also those on which nothing was installed, because they had the same purposes.
 */
export async function takeLabelLimits(
  tx: Sql,
  { accountId, uuids, labels = null, changeId = null, isForced = false, by }: Taking,
): Promise<ProfileTarget[]> {
  const wanted = await listWanted(tx, accountId, uuids, isForced);
  const claimed = await claimTargets(tx, accountId, [...wanted.keys()], labels);
  // They may have got a profile before they were claimed.
  const still =
    claimed.length === 0 ? wanted : await listWanted(tx, accountId, [...wanted.keys()], isForced);
  const changing = claimed.flatMap((target) => {
    const found = still.get(target.uuid);
    return found ? [{ ...target, ...found }] : [];
  });
  const [same, other] = [true, false].map((is) => changing.filter(({ isSame }) => isSame === is));
  if (same && same.length > 0) await relabel(tx, same, changeId);
  if (!other || other.length === 0) return changing;
  await supersedeProfiles(tx, other);
  for (const [contentId, those] of Map.groupBy(other, (each) => each.contentId)) {
    const pId = await getProfileOf(tx, { accountId, contentId, changeId, by });
    const installs = those.map(({ deviceId, formerId, label }) => ({
      deviceId,
      pId,
      formerId,
      label,
    }));
    await setPending(tx, accountId, installs, those[0]?.silenceMs ?? null);
  }
  return changing;
}

type Taking = {
  accountId: number;
  uuids: readonly string[];
  /** Only devices with one of these labels; null: any. */
  labels?: readonly string[] | null;
  /** The change of many devices that this is a part of; null: none. */
  changeId?: string | null;
  /** Also in the place of limits of their own. */
  isForced?: boolean;
  /** Who gives them; absent: nobody but the label. */
  by?: WrittenBy;
};

type Wanted = {
  label: string;
  contentId: number;
  silenceMs: number | null;
  formerId: string | null;
  /** It has the same purposes already, from another label. */
  isSame: boolean;
};

/** The devices that should have other limits of a label than they have, by uuid. A profile without purposes is none. */
async function listWanted(
  sql: Sql,
  accountId: number,
  uuids: readonly string[],
  isForced: boolean,
): Promise<Map<string, Wanted>> {
  const { rows } = await sql.query<Wanted & { uuid: string }>(
    `
      with limits as materialized (
        select l.place, l.own ->> 'label' as label, p.content_id, (l.own ->> 'silenceMs')::float8 as silence_ms
          from account a
         cross join json_array_elements(a.label_limits) with ordinality as l (own, place)
          join profile p on p.id = (l.own ->> 'pId')::uuid
         where a.id = $1 and p.content_id is not null
      )
      select d.uuid, wanted.label, wanted.content_id as "contentId", wanted.silence_ms as "silenceMs",
             newest.id as "formerId", newest.content_id is not distinct from wanted.content_id as "isSame"
        from device d
       cross join lateral (
         select * from limits where limits.label = any(d.labels) order by place limit 1) wanted
        left join lateral (
         select p.id, p.content_id, dp.label, c.bytes
           from device_profile dp
           join profile p on p.id = dp.profile_id
           join profile_content c on c.id = p.content_id
          where dp.device_id = d.id and dp.state in ${needed}
          order by dp.state = 'current'
          limit 1) newest on true
       where d.account_id = $1 and d.uuid = any($2::uuid[])
         and ($3 or newest.id is null or newest.bytes = 2 or newest.label is not null)
         and (newest.label, newest.content_id) is distinct from (wanted.label, wanted.content_id)`,
    [accountId, uuids, isForced],
  );
  return new Map(rows.map(({ uuid, ...row }) => [uuid, row]));
}

/** The purposes that they have are those of another label now. Notes what they were before a change of many devices. */
async function relabel(
  tx: Sql,
  devices: readonly { deviceId: number; formerId: string | null; label: string }[],
  changeId: string | null,
) {
  await tx.query(
    `update device_profile dp
        set label = n.label, relabelled_by = $4, relabelled_from = case when $4::uuid is not null then dp.label end
       from unnest($1::bigint[], $2::uuid[], $3::text[]) as n (device_id, profile_id, label)
      where dp.device_id = n.device_id and dp.profile_id = n.profile_id`,
    [
      devices.map(({ deviceId }) => deviceId),
      devices.map(({ formerId }) => formerId),
      devices.map(({ label }) => label),
      changeId,
    ],
  );
}

/**
 * Changes labels of devices with `change`, and gives the devices the limits that follow. The account's usage is locked
 * (`lockUsage`). Locks the devices' states before `change` locks devices, as ingest does. `taken`: to be told of it.
 */
export async function withLabelLimits<T>(
  tx: Sql,
  { accountId, uuids }: { accountId: number; uuids: readonly string[] },
  change: () => Promise<T>,
): Promise<{ result: T; taken: ProfileTarget[] }> {
  const { rowCount } = await tx.query(
    `
      select from device_state
       where device_id in (
         select d.id from device d
           join account a on a.id = d.account_id
          where d.account_id = $1 and d.uuid = any($2::uuid[]) and a.label_limits is not null)
       order by device_id
         for update`,
    [accountId, uuids],
  );
  const result = await change();
  return { result, taken: rowCount === 0 ? [] : await takeLabelLimits(tx, { accountId, uuids }) };
}

const mostLabels = 100;

const LabelLimits = z
  .array(z.strictObject({ label: Label, purposeUuid: uuidParam }).meta({ id: 'LimitsOfLabel' }))
  .max(mostLabels)
  .refine((limits) => new Set(limits.map(({ label }) => label)).size === limits.length, {
    message: 'each label once',
  })
  .meta({ description: 'In the order in which labels count.' });
type LabelLimits = z.infer<typeof LabelLimits>;

type LabelLimitsDeps = {
  db: Database;
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  newUuid: () => string;
  /** Stores the action as a job, within the quota `jobs`; throws `quota-exceeded`. */
  startJob: (
    job: {
      accountId: number;
      keyId: string | null;
      action: { action: string };
      labels: null;
      actor: Actor;
      ts: number;
      select: (tx: Sql) => Promise<{ devices: string[]; more: { change: object } }>;
      now: Clock;
    },
    keep: Keep<{ jobId: string; timestamp: number }> | null,
  ) => Promise<{ jobId: string; timestamp: number }>;
};

/** The limits that labels give to devices. */
export const labelLimitRoutes = (deps: LabelLimitsDeps): Route[] => [read(deps), replace(deps)];

const common = {
  path: '/v2/devices/labels/limits',
  tag: 'Devices',
  auth: 'account',
  isOfWholeAccount: true,
} as const;

function read({ db }: LabelLimitsDeps): Route {
  return defineRoute({
    ...common,
    name: 'listLabelLimits',
    scope: 'devices:read',
    method: 'get',
    summary: 'List the limits of labels',
    response: z.object({ limits: LabelLimits, timestamp }),
    errors: [],
    handler: async ({ account, request }) => {
      const limits = await readStored(db, account.accountId);
      return {
        limits: limits.map(({ label, purposeUuid }) => ({ label, purposeUuid })),
        timestamp: request.now(),
      };
    },
  });
}

function replace(deps: LabelLimitsDeps): Route {
  const runFairly = createFairRunner(1);
  return defineRoute({
    ...common,
    name: 'replaceLabelLimits',
    scope: 'devices:write',
    method: 'put',
    summary: 'Replace the limits of labels',
    description:
      'Devices with one of these labels get a copy of the purpose as it is now, unless somebody has installed another ' +
      'profile on them. A job does that with those that exist; `restore` with its `jobId` brings back what each had. Others get ' +
      'it with the label.',
    body: z.object({ limits: LabelLimits }),
    example: { limits: [{ label: 'freezer', purposeUuid: exampleIds.purpose }] },
    response: z.object({ jobId: z.guid(), timestamp }),
    errors: [403, 404],
    handler: async ({ account, body: { limits }, request }) => {
      const { accountId } = account;
      const { actor, ts } = doneBy(account, request);
      const changeId = deps.newUuid();
      const select = async (tx: Sql) => {
        const changed = await replaceStored(tx, deps, accountId, limits);
        await noteStored(tx, accountId, changed, { actor, ts });
        const change = { changeId, byLabel: 'not-own' as const, limits: changed };
        return { devices: await listFollowing(tx, accountId, changed), more: { change } };
      };
      const job = {
        accountId,
        keyId: account.key ? account.sessionId : null,
        action: { action: 'label-limits' },
        labels: null,
        actor,
        ts,
        select,
        now: request.now,
      };
      return runFairly(accountId, () => deps.startJob(job, null));
    },
  });
}

type StoredLimit = LabelLimits[number] & { pId: string; silenceMs: number | null };

/** The limits of labels before a change and after it. */
export type ChangedLimits = { from: readonly StoredLimit[]; to: readonly StoredLimit[] };

async function readStored(sql: Sql, accountId: number): Promise<StoredLimit[]> {
  const { rows } = await sql.query<{ limits: StoredLimit[] | null }>(
    'select label_limits as limits from account where id = $1',
    [accountId],
  );
  return rows[0]?.limits ?? [];
}

/** The account's usage is locked, which comes before the account's row. */
async function writeStored(tx: Sql, accountId: number, limits: readonly StoredLimit[]) {
  await tx.query('update account set label_limits = $2 where id = $1', [
    accountId,
    limits.length === 0 ? null : JSON.stringify(limits),
  ]);
}

/**
 * Puts the limits back that a change has replaced, if they are still those that it has given; the account's usage is
 * locked. Returns what that changes; undefined: nothing, because somebody has replaced them since.
 */
export async function putBack(
  tx: Sql,
  accountId: number,
  { from, to }: ChangedLimits,
  by: DoneBy,
): Promise<ChangedLimits | undefined> {
  const now = await readStored(tx, accountId);
  if (JSON.stringify(now) !== JSON.stringify(to)) return undefined;
  await writeStored(tx, accountId, from);
  const changed = { from: to, to: from };
  await noteStored(tx, accountId, changed, by);
  return changed;
}

/** In the audit trail. */
function noteStored(tx: Sql, accountId: number, { to }: ChangedLimits, by: DoneBy): Promise<void> {
  const details = { labels: to.map(({ label }) => label) };
  return insertEntry(tx, accountId, { kind: 'label-limits-changed', ...by, details });
}

/** The account's usage is locked. Throws `not-found`, `invalid-input` and `quota-exceeded`. */
async function replaceStored(
  tx: Sql,
  { quotas, limitsOf }: LabelLimitsDeps,
  accountId: number,
  limits: LabelLimits,
): Promise<ChangedLimits> {
  const from = await readStored(tx, accountId);
  const holders = await listHolders(tx, from);
  const copies = new Map<string, Pick<StoredLimit, 'pId' | 'silenceMs'>>();
  const to: StoredLimit[] = [];
  for (const [n, { label, purposeUuid }] of limits.entries()) {
    const copy =
      copies.get(purposeUuid) ?? (await copyPurpose(tx, purposeUuid, `/limits/${n}/purposeUuid`));
    copies.set(purposeUuid, copy);
    to.push({ label, purposeUuid, ...copy });
  }
  await writeStored(tx, accountId, to);
  return { from, to };

  async function copyPurpose(sql: Sql, purposeUuid: string, path: string) {
    const asked = { purposeUuids: [purposeUuid], purposes: [] };
    const { purposes, problems } = await readAsked(sql, accountId, asked, limitsOf(accountId));
    if (problems.length > 0) throw unfit(problems.map(({ message }) => ({ path, message })));
    const contentId = await storeContent(sql, accountId, toText(purposes), quotas);
    const known = holders.get(contentId);
    const pId = known ?? (await getProfileOf(sql, { accountId, contentId, changeId: null }));
    holders.set(contentId, pId);
    return { pId, silenceMs: firstSilenceMs(purposes) };
  }
}

/** The profiles of these limits, by their contents. */
async function listHolders(sql: Sql, limits: readonly StoredLimit[]): Promise<Map<number, string>> {
  const { rows } = await sql.query<{ id: string; contentId: number }>(
    'select id, content_id as "contentId" from profile where id = any($1::uuid[]) and content_id is not null',
    [limits.map(({ pId }) => pId)],
  );
  return new Map(rows.map(({ id, contentId }) => [contentId, id]));
}

/** The devices that other limits of labels give other limits. */
export async function listFollowing(
  sql: Sql,
  accountId: number,
  { to }: ChangedLimits,
): Promise<string[]> {
  const labels = to.map(({ label }) => label);
  const labelled = await listLabelled(sql, accountId, labels);
  return [...(await listWanted(sql, accountId, labelled, false)).keys()];
}

/** In the order of registration. */
async function listLabelled(sql: Sql, accountId: number, labels: readonly string[]) {
  const { rows } = await sql.query<{ uuids: string | null }>(
    `select string_agg(uuid::text, ',' order by created_at, id) as uuids
       from device where account_id = $1 and labels && $2::text[]`,
    [accountId, labels],
  );
  return rows[0]?.uuids?.split(',') ?? [];
}
