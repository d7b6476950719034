import { z } from 'zod';
import { type Actor, doneBy, insertEntry } from '../audit/audit.ts';
import { Label } from '../contract/values.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Keep } from '../http/answer.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleIds, timestamp, uuidParam } from '../http/schema.ts';
import type { Clock } from '../lib/clock-readings.ts';
import type { LimitsOf } from '../quotas/quotas.ts';
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

/** Gives devices the limits of their labels, if they have none of their own. Returns the devices that change. */
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
  if (same && same.length > 0) await rename(tx, same);
  if (!other || other.length === 0) return [];
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
  return other;
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

/** The purposes that they have are those of another label now. */
async function rename(
  tx: Sql,
  devices: readonly { deviceId: number; formerId: string | null; label: string }[],
) {
  await tx.query(
    `update device_profile dp set label = n.label
       from unnest($1::bigint[], $2::uuid[], $3::text[]) as n (device_id, profile_id, label)
      where dp.device_id = n.device_id and dp.profile_id = n.profile_id`,
    [
      devices.map(({ deviceId }) => deviceId),
      devices.map(({ formerId }) => formerId),
      devices.map(({ label }) => label),
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
      select: (tx: Sql) => Promise<{ devices: string[] }>;
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
      const limits = (await readStored(db, account.accountId)) ?? [];
      return {
        limits: limits.map(({ label, purposeUuid }) => ({ label, purposeUuid })),
        timestamp: request.now(),
      };
    },
  });
}

function replace(deps: LabelLimitsDeps): Route {
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
        await store(tx, deps, accountId, limits);
        const names = limits.map(({ label }) => label);
        const details = { labels: names };
        await insertEntry(tx, accountId, { kind: 'label-limits-changed', actor, ts, details });
        const labelled = await listLabelled(tx, accountId, names);
        return { devices: [...(await listWanted(tx, accountId, labelled, false)).keys()] };
      };
      const job = {
        accountId,
        keyId: account.key ? account.sessionId : null,
        action: { action: 'label-limits', change: { changeId, byLabel: 'not-own' } },
        labels: null,
        actor,
        ts,
        select,
        now: request.now,
      };
      return deps.startJob(job, null);
    },
  });
}

type StoredLimit = LabelLimits[number] & { pId: string; silenceMs: number | null };

async function readStored(sql: Sql, accountId: number): Promise<StoredLimit[] | null> {
  const { rows } = await sql.query<{ limits: StoredLimit[] | null }>(
    'select label_limits as limits from account where id = $1',
    [accountId],
  );
  return rows[0]?.limits ?? null;
}

/** The account's usage is locked. Throws `not-found`, `invalid-input` and `quota-exceeded`. */
async function store(
  tx: Sql,
  { quotas, limitsOf }: LabelLimitsDeps,
  accountId: number,
  limits: LabelLimits,
): Promise<void> {
  const stored: StoredLimit[] = [];
  for (const [n, { label, purposeUuid }] of limits.entries()) {
    const asked = { purposeUuids: [purposeUuid], purposes: [] };
    const { purposes, problems } = await readAsked(tx, accountId, asked, limitsOf(accountId));
    if (problems.length > 0)
      throw unfit(problems.map(({ message }) => ({ path: `/limits/${n}/purposeUuid`, message })));
    const contentId = await storeContent(tx, accountId, toText(purposes), quotas);
    const pId = await getProfileOf(tx, { accountId, contentId, changeId: null });
    stored.push({ label, purposeUuid, pId, silenceMs: firstSilenceMs(purposes) });
  }
  await tx.query('update account set label_limits = $2 where id = $1', [
    accountId,
    stored.length === 0 ? null : JSON.stringify(stored),
  ]);
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
