import { z } from 'zod';
import { type Actor, type DoneBy, doneBy } from '../audit/audit.ts';
import { maxLabels } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { refuseLabelList } from './select.ts';
import type { Keep } from '../http/answer.ts';
import type { Account } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { exampleIds, timestamp } from '../http/schema.ts';
import { type FindByValues, selectDevices } from './list.ts';
import { invalid } from '../http/route.ts';
import { createFairRunner } from '../quotas/quotas.ts';
import {
  ActionPreview,
  askedChange,
  type AskedChange,
  DeviceAction,
  mostDevices,
  type StoredAction,
} from './actions-schema.ts';
import { type ConnectorAddress, intermittentAmong } from './schema.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

type Started = { jobId: string; timestamp: number };

export type ActionDeps = {
  /** Stores the action as a job, within the quota `jobs`; throws `quota-exceeded`. */
  startJob: (
    job: {
      accountId: number;
      keyId: string | null;
      action: StoredAction;
      labels: readonly string[] | null;
      actor: Actor;
      ts: number;
      select: (tx: Sql) => Promise<{ devices: string[]; more?: Partial<StoredAction> }>;
      now: Clock;
    },
    keep: Keep<Started> | null,
  ) => Promise<Started>;
  /** The devices of a job that has ended; null if they are no longer stored. */
  listJobDevices: (
    tx: Sql,
    owner: { accountId: number; keyId: string | null },
    jobId: string,
  ) => Promise<string[] | null>;
  /** Plans other profiles, and stores what is installed. Throws `not-found`, `invalid-input`, `quota-exceeded`. */
  planChange: (
    tx: Sql,
    of: { accountId: number; labels: readonly string[] | null },
    asked: AskedChange,
    by: DoneBy & { reason?: string | undefined },
  ) => Promise<{ change: object; names: string[] }>;
  /** The way back from a job that changed profiles, and its devices; null if there is no such job. */
  planBack: (
    tx: Sql,
    owner: { accountId: number; keyId: string | null },
    jobId: string,
    by: DoneBy,
  ) => Promise<{ change: object; devices: string[] } | null>;
  /** Gives devices the limits of their labels in the place of their own. */
  planByLabel: () => object;
  /** What a change would do with these devices. Throws as `planChange` does. */
  previewChange: (
    of: { accountId: number; uuids: string[]; labels: readonly string[] | null },
    asked: AskedChange,
  ) => Promise<Omit<ActionPreview, 'of' | 'timestamp'>>;
  /** Whether a mute may last until then; both in ms. */
  isAhead: (untilTs: number, nowTs: WallMs) => boolean;
  listConnectors: () => readonly ConnectorAddress[];
  findByValues: FindByValues;
};

/** Starts an action on many devices, as a job. */
export function actionsRoute(deps: ActionDeps): Route {
  return defineRoute({
    name: 'startDeviceAction',
    scope: 'devices:write',
    method: 'post',
    path: '/v2/devices/actions',
    summary: 'Apply an action to many devices',
    description:
      'The action continues after the answer, as a job: `GET /v2/jobs/{jobId}` shows its ' +
      'progress. The devices are those that match the filter now, those that are named, or ' +
      'those of a job that has ended. `label` and `unlabel` skip devices that they would not ' +
      'change. `limits` replaces numbers in the profile `ifPId`, on the devices that still have it or one with the ' +
      'same purposes; on others it fails as `changed`. It may do that with several profiles at once, and install ' +
      'purposes on devices without a profile. `profile` installs purposes on devices that do not have the same ' +
      'already. `label-limits` gives devices the limits of their labels in the place of their own. `restore` with the `jobId` of one of these brings back the profile that each device had. ' +
      '`mute` and `unmute` also require the scope alarms:write. A key that is ' +
      'restricted to labels cannot change labels.',
    tag: 'Devices',
    auth: 'account',
    takesKey: true,
    body: DeviceAction,
    example: { action: 'label', labels: ['cellar'], deviceAuthUuids: [exampleIds.device] },
    response: z.object({ jobId: z.guid(), timestamp }),
    errors: [403, 404],
    answerBytes: 1_048_576,
    handler: async ({ account, body, request, once }) => {
      const { action, labels, untilTs, reason, jobId } = body;
      checkKey(account, action);
      if (untilTs !== undefined && !deps.isAhead(untilTs, request.receivedTs)) throw notAhead();
      const { accountId } = account;
      const select = async (tx: Sql) => {
        if (action === 'restore' && jobId !== undefined) {
          const back = await deps.planBack(tx, ownerOf(account), jobId, doneBy(account, request));
          if (!back) throw forgotten();
          return { devices: back.devices, more: { change: back.change } };
        }
        const uuids = await findAsked(tx, deps, { account, body, nowTs: request.now() });
        const devices = labels
          ? await leaveOutLabelled(tx, { accountId, uuids, action, labels })
          : uuids;
        const asked = askedChange(body);
        if (!asked) return { devices };
        const by = { ...doneBy(account, request), reason };
        const of = { accountId, labels: labelsOf(account) };
        const { change, names } = await deps.planChange(tx, of, asked, by);
        return { devices, more: { change, ...(action === 'profile' ? { purposes: names } : {}) } };
      };
      return once<Started>(async (keep) => {
        const change = action === 'label-limits' ? deps.planByLabel() : undefined;
        const job = {
          accountId,
          keyId: account.key ? account.sessionId : null,
          action: {
            action,
            ...(labels ? { labels } : {}),
            ...(untilTs ? { untilTs } : {}),
            ...(reason ? { reason } : {}),
            ...(jobId ? { undoes: jobId } : {}),
            ...(change ? { change } : {}),
          },
          labels: labelsOf(account),
          ...doneBy(account, request),
          select,
          now: request.now,
        };
        return deps.startJob(job, keep);
      });
    },
  });
}

/** Says what an action on profiles would do, and does nothing. */
export function previewRoute(deps: ActionDeps & { db: Sql }): Route {
  const runFairly = createFairRunner(1);
  return defineRoute({
    name: 'previewDeviceAction',
    scope: 'devices:read',
    method: 'post',
    path: '/v2/devices/actions/preview',
    summary: 'Show what an action would change',
    description:
      'Takes the body of `POST /v2/devices/actions` with the action `limits` or `profile`, and says what would change on ' +
      'which devices. Nothing changes.',
    tag: 'Devices',
    auth: 'account',
    // A schema of its own, as each body has its own name in the reference.
    body: DeviceAction.meta({ description: 'With the action `limits` or `profile`.' }),
    example: {
      action: 'profile',
      purposeUuids: [exampleIds.purpose],
      deviceAuthUuids: [exampleIds.device],
    },
    response: ActionPreview,
    errors: [403, 404],
    answerBytes: 8_388_608,
    handler: async ({ account, body, request }) => {
      const asked = askedChange(body);
      if (!asked) throw invalid([{ path: '/action', message: 'expected limits or profile' }]);
      const { accountId } = account;
      checkPreview(account, body);
      return runFairly(accountId, async () => {
        const uuids = await findAsked(deps.db, deps, { account, body, nowTs: request.now() });
        const of = { accountId, uuids: uuids.slice(0, mostDevices), labels: labelsOf(account) };
        const preview = await deps.previewChange(of, asked);
        return { of: uuids.length, ...preview, timestamp: request.now() };
      });
    },
  });
}

/** A key that is confined to labels reaches only the jobs that it started. */
const ownerOf = (account: Account) => ({
  accountId: account.accountId,
  keyId: labelsOf(account) ? account.sessionId : null,
});

/** The devices that a request names, filters, or takes from a job. Throws `not-found`, and `invalid-input`. */
async function findAsked(
  sql: Sql,
  { findByValues, listConnectors, listJobDevices }: ActionDeps,
  { account, body, nowTs }: { account: Account; body: DeviceAction; nowTs: WallMs },
): Promise<string[]> {
  const { deviceAuthUuids, filter, jobId } = body;
  if (deviceAuthUuids) return [...new Set(deviceAuthUuids)];
  if (jobId !== undefined) {
    const found = await listJobDevices(sql, ownerOf(account), jobId);
    if (!found) throw forgotten();
    return found;
  }
  const { accountId } = account;
  const labels = labelsOf(account);
  const { label = [], ...others } = filter ?? {};
  const named = typeof label === 'string' ? [label] : label;
  for (const each of named)
    await refuseLabelList(sql, accountId, { label: each, labels }, '/filter/label');
  return selectDevices(sql, {
    ...others,
    ids: await findByValues(sql, { accountId, labels, ...others }),
    label: named.length === 0 ? undefined : named,
    accountId,
    labels,
    nowTs,
    intermittent: intermittentAmong(listConnectors()),
  });
}

function checkKey(account: Account, action: DeviceAction['action']): void {
  const isOfAlarms = action === 'mute' || action === 'unmute';
  if (isOfAlarms && account.key && !account.key.scopes.includes('alarms:write'))
    throw new DomainError('forbidden', 'The API key lacks the scope alarms:write.');
  if ((action === 'label' || action === 'unlabel') && labelsOf(account))
    throw new DomainError(
      'forbidden',
      'The API key is restricted to devices with certain labels and cannot change labels.',
    );
}

/** Whoever may install purposes may see them. */
function checkPreview({ key }: Account, { purposeUuids, limits }: DeviceAction): void {
  const names = [{ purposeUuids }, ...(limits ?? [])].some(
    (each) => 'purposeUuids' in each && each.purposeUuids?.length,
  );
  if (names && key && !key.scopes.some((scope) => showsPurposes.has(scope)))
    throw new DomainError('forbidden', 'The API key lacks the scope purposes:read.');
}
const showsPurposes: ReadonlySet<string> = new Set(['purposes:read', 'devices:write']);

const forgotten = () =>
  new DomainError(
    'not-found',
    'No such job, or the job has not ended, or it ended more than an hour ago.',
  );

function notAhead(): DomainError {
  const problems = [{ path: '/untilTs', message: 'is not within the next five years' }];
  return new DomainError('invalid-input', 'The request is not valid.', { problems });
}

type Relabelled = {
  accountId: number;
  uuids: readonly string[];
  add: readonly string[];
  remove: readonly string[];
};

/** Adds and removes labels of devices. Returns devices that do not exist, and those that would have too many labels. */
export async function relabelDevices(
  tx: Sql,
  { accountId, uuids, add, remove }: Relabelled,
): Promise<{ missing: string[]; full: string[] }> {
  const { rows } = await tx.query<{ uuid: string; isFull: boolean }>(
    `
      with found as (
        select id, uuid,
               array(select l from unnest(labels) with ordinality as own (l, place)
                      where l <> all($4::text[]) order by place)
                 || array(select l from unnest($3::text[]) as added (l) where l <> all(labels))
               as labels
          from device
         where account_id = $1 and uuid = any($2::uuid[])
         order by id
           for no key update
      ), changed as (
        update device d
           set labels = f.labels
          from found f
         where d.id = f.id and cardinality(f.labels) <= ${maxLabels} and d.labels <> f.labels
      )
      select uuid, cardinality(labels) > ${maxLabels} as "isFull" from found`,
    [accountId, uuids, add, remove],
  );
  const found = new Set(rows.map(({ uuid }) => uuid));
  return {
    missing: uuids.filter((uuid) => !found.has(uuid)),
    full: rows.filter(({ isFull }) => isFull).map(({ uuid }) => uuid),
  };
}

/** Those that belong to the account and have one of the labels (null: any device), by ascending number. */
export async function listReachable(
  tx: Sql,
  accountId: number,
  { uuids, labels }: { uuids: readonly string[]; labels: readonly string[] | null },
): Promise<{ deviceId: number; uuid: string }[]> {
  const { rows } = await tx.query<{ deviceId: number; uuid: string }>(
    `
      select id as "deviceId", uuid
        from device
       where account_id = $1 and uuid = any($2::uuid[]) and ($3::text[] is null or labels && $3)
       order by id`,
    [accountId, uuids, labels],
  );
  return rows;
}

/** Leaves out devices that would not change: they have all labels to be added, or none of those to be removed. */
async function leaveOutLabelled(
  tx: Sql,
  of: { accountId: number; uuids: readonly string[]; action: string; labels: readonly string[] },
): Promise<string[]> {
  const { rows } = await tx.query<{ uuids: string[] | null }>(
    `
      select array_agg(named.uuid::text order by named.place) as uuids
        from unnest(string_to_array($2, ',')::uuid[]) with ordinality as named (uuid, place)
        left join device d on d.uuid = named.uuid and d.account_id = $1
       where d.id is null or ${of.action === 'label' ? 'not d.labels @> $3' : 'd.labels && $3'}`,
    [of.accountId, of.uuids.join(), of.labels],
  );
  return rows[0]?.uuids ?? [];
}

const listed = 1_000;

export const LabelList = z.object({
  labels: z.array(
    z
      .object({
        label: z.string(),
        devices: z.int().meta({ description: 'How many devices have it.' }),
      })
      .meta({ id: 'LabelCount' }),
  ),
  timestamp,
});
export type LabelList = z.infer<typeof LabelList>;

/** The labels of an account's devices. */
export function labelsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listDeviceLabels',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/labels',
    summary: 'List the labels of devices',
    description: `In alphabetical order. If there are more than ${listed}, those that most devices have.`,
    tag: 'Devices',
    auth: 'account',
    errors: [],
    response: LabelList,
    answerBytes: 1_048_576,
    handler: async ({ account, request }) => {
      const labels = await listLabels(db, account.accountId, labelsOf(account));
      return { labels, timestamp: request.now() };
    },
  });
}

/** `within`: only devices that have one of these labels; null: any device. */
async function listLabels(db: Sql, accountId: number, within: readonly string[] | null) {
  const { rows } = await db.query<{ label: string; devices: number }>(
    `
      select * from (
        select label, count(*)::integer as devices
          from device
         cross join unnest(labels) as label
         where account_id = $1 and ($2::text[] is null or labels && $2)
         group by label
         order by devices desc, label
         limit $3) most
       order by lower(label), label`,
    [accountId, within, listed],
  );
  return rows;
}
