import { z } from 'zod';
import { type Actor, doneBy } from '../audit/entry.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { refuseLabelList } from '../exports/list-devices.ts';
import type { Keep } from '../http/once.ts';
import type { Account } from '../http/request.ts';
import { labelsOf } from '../http/rights.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleIds, timestamp } from '../http/schema.ts';
import { DeviceAction, type StoredAction } from './action-schema.ts';
import { selectDevices } from './find-devices.ts';
import { leaveOutLabelled } from './label-devices.ts';
import { type ConnectorAddress, intermittentAmong } from './pick-connector.ts';

type Started = { jobId: string; timestamp: number };

export type ActionDeps = {
  /** Stores it as a job within the quota `jobs`; throws `quota-exceeded`. */
  startJob: (
    job: {
      accountId: number;
      keyId: string | null;
      action: StoredAction;
      labels: readonly string[] | null;
      actor: Actor;
      ts: number;
      select: (tx: Sql) => Promise<string[]>;
      now: () => number;
    },
    keep: Keep<Started> | null,
  ) => Promise<Started>;
  /** The devices of a job that has ended; null where they are forgotten. */
  listJobDevices: (
    tx: Sql,
    owner: { accountId: number; keyId: string | null },
    jobId: string,
  ) => Promise<string[] | null>;
  /** Whether a mute may last until then; both in ms. */
  isAhead: (untilTs: number, nowTs: number) => boolean;
  listConnectors: () => readonly ConnectorAddress[];
};

/** Begins to do something with many devices. */
export function actionsRoute(deps: ActionDeps): Route {
  const { startJob, listJobDevices, isAhead, listConnectors } = deps;
  return defineRoute({
    name: 'startDeviceAction',
    scope: 'devices:write',
    method: 'post',
    path: '/v2/devices/actions',
    summary: 'Do something with many devices',
    description:
      'Goes on after the answer, as a job: `GET /v2/jobs/{jobId}` says how far it is. Devices are those that ' +
      'the filter lets through now, those that are named, or those of a job that has ended; of `label` and ' +
      '`unlabel` without those that it would not change. `mute` and `unmute` take the scope ' +
      'alarms:write too; a key that is confined to labels changes no labels.',
    tag: 'Devices',
    auth: 'account',
    takesKey: true,
    body: DeviceAction,
    example: { action: 'label', labels: ['cellar'], deviceAuthUuids: [exampleIds.device] },
    response: z.object({ jobId: z.guid(), timestamp }),
    errors: [403, 404],
    room: 1_048_576,
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
          const given = { label: filter?.label, labels: within };
          await refuseLabelList(tx, accountId, given, '/filter/label');
          return selectDevices(tx, {
            ...filter,
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
        return labels ? leaveOutLabelled(tx, { accountId, uuids, action, labels }) : uuids;
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
      return once<Started>((keep) => startJob(job, keep));
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
      'The API key is confined to devices with certain labels, and changes no labels.',
    );
}

const forgotten = () =>
  new DomainError(
    'not-found',
    'There is no such job, it has not ended, or it ended more than an hour ago.',
  );

function notAhead(): DomainError {
  const problems = [{ path: '/untilTs', message: 'is not within the next five years' }];
  return new DomainError('invalid-input', 'The request is not valid.', { problems });
}
