import { z } from 'zod';
import { type Actor, doneBy } from '../audit/audit.ts';
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
import {
  type ConnectorAddress,
  DeviceAction,
  intermittentAmong,
  type Replacement,
  type StoredAction,
} from './schema.ts';
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
      select: (tx: Sql) => Promise<{ devices: string[] }>;
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
  /** The profile `ifPId` with other numbers. Throws `not-found` and `invalid-input`. */
  planLimits: (
    accountId: number,
    asked: Required<Pick<DeviceAction, 'ifPId' | 'changes'>>,
  ) => Promise<Replacement>;
  /** The way back from a job that changed limits, or restored them; null if there is no such job. */
  planRestore: (
    owner: { accountId: number; keyId: string | null },
    jobId: string,
  ) => Promise<Replacement | null>;
  /** Whether a mute may last until then; both in ms. */
  isAhead: (untilTs: number, nowTs: WallMs) => boolean;
  listConnectors: () => readonly ConnectorAddress[];
  findByValues: FindByValues;
};

/** Starts an action on many devices, as a job. */
export function actionsRoute(deps: ActionDeps): Route {
  const { startJob, listJobDevices, isAhead, listConnectors, findByValues } = deps;
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
      'same purposes; on others it fails as `changed`. `restore` with the `jobId` of a `limits` takes it back. ' +
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
      const { action, labels, untilTs, reason, deviceAuthUuids, filter, jobId } = body;
      checkKey(account, action);
      if (untilTs !== undefined && !isAhead(untilTs, request.receivedTs)) throw notAhead();
      const { accountId } = account;
      const within = labelsOf(account);
      const { actor, ts } = doneBy(account, request);
      const owner = { accountId, keyId: within ? account.sessionId : null };
      const find = async (tx: Sql) => {
        if (deviceAuthUuids) return [...new Set(deviceAuthUuids)];
        if (jobId === undefined) {
          const { label = [], ...others } = filter ?? {};
          const named = typeof label === 'string' ? [label] : label;
          for (const each of named)
            await refuseLabelList(tx, accountId, { label: each, labels: within }, '/filter/label');
          return selectDevices(tx, {
            ...others,
            ids: await findByValues(tx, { accountId, labels: within, ...others }),
            label: named.length === 0 ? undefined : named,
            accountId,
            labels: within,
            nowTs: request.now(),
            intermittent: intermittentAmong(listConnectors()),
          });
        }
        const found = await listJobDevices(tx, owner, jobId);
        if (!found) throw forgotten();
        return found;
      };
      const select = async (tx: Sql) => {
        const uuids = await find(tx);
        const devices = labels
          ? await leaveOutLabelled(tx, { accountId, uuids, action, labels })
          : uuids;
        return { devices };
      };
      const plan = async (): Promise<{ replacement?: Replacement }> => {
        const { ifPId, changes } = body;
        if (ifPId && changes)
          return { replacement: await deps.planLimits(accountId, { ifPId, changes }) };
        if (action !== 'restore' || jobId === undefined) return {};
        const replacement = await deps.planRestore(owner, jobId);
        if (!replacement) throw forgotten();
        return { replacement };
      };
      const job = {
        accountId,
        keyId: account.key ? account.sessionId : null,
        action: {
          action,
          ...(labels ? { labels } : {}),
          ...(untilTs ? { untilTs } : {}),
          ...(reason ? { reason } : {}),
        },
        labels: within,
        actor,
        ts,
        select,
        now: request.now,
      };
      return once<Started>(async (keep) =>
        startJob({ ...job, action: { ...job.action, ...(await plan()) } }, keep),
      );
    },
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
