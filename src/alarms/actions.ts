import { z } from 'zod';
import { type Actor, doneBy } from '../audit/audit.ts';
import { Severity } from '../contract/actions.ts';
import { AlarmState } from '../contract/alarm.ts';
import { Text } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import { refuseLabelList } from '../devices/select.ts';
import { DomainError, type SaidValue } from '../errors.ts';
import type { Keep } from '../http/answer.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { describeAs, exampleIds, labelsQuery, namedLabels, timestamp } from '../http/schema.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';
import { type Act, type ActDeps, actWithin, type AlarmAction } from './act.ts';
import { findAlarmDevices } from './rows.ts';
import { reopenMs } from './rules.ts';
import { type AlarmSearch, selectAlarms } from './search.ts';

// One action on many alarms, as a job: which alarms, what is done with each, and for which it could not be done.

const ofMessage =
  'Only alarms that the message with this `notificationId` was about, or the summary that was sent as it.';

/** Which alarms of an account, in a query and in JSON. */
export const alarmFilter = {
  state: AlarmState.optional().meta({ description: 'Only alarms in this state.' }),
  device: z
    .guid()
    .toLowerCase()
    .optional()
    .meta({ description: 'Only alarms of this `deviceAuthUuid`.' }),
  label: labelsQuery,
  search: Text.min(1).max(200).optional().meta({
    description: "Only alarms with this in the device's or the event's name, in any case.",
  }),
  event: Text.min(1).optional().meta({
    description: 'Only alarms of this event, by its name; `puId/stId/evId` if it has none.',
  }),
  severity: Severity.optional().meta({ description: 'Only alarms of this severity.' }),
  notification: z
    .string()
    .regex(/^\d{1,15}$/, 'expected the number of a message')
    .transform(Number)
    .optional()
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        describeAs(jsonSchema, { type: 'integer', minimum: 0, description: ofMessage });
      },
    }),
};

/** What somebody writes about an alarm: a reason, what was done. */
export const Note = Text.max(1_000).optional();

const actions = ['acknowledge', 'close', 'reopen', 'snooze', 'unsnooze'] as const;
type ActionName = (typeof actions)[number];

/** Alarms that a request may name, and that a filter may match. */
const mostNamed = 10_000;
const mostMatched = 100_000;

const takers: Record<'note' | 'force' | 'untilTs' | 'reason', readonly ActionName[]> = {
  note: ['acknowledge', 'close'],
  force: ['close'],
  untilTs: ['snooze'],
  reason: ['snooze'],
};

const Body = z
  .object({
    action: z.enum(actions),
    note: Note.meta({ description: 'For acknowledge and close.' }),
    force: z
      .boolean()
      .optional()
      .meta({ description: 'For close: also alarms whose condition holds.' }),
    untilTs: z.int().min(0).optional().meta({ description: 'For snooze: until when, ms.' }),
    reason: Text.max(200).optional().meta({ description: 'For snooze.' }),
    alarmIds: z.array(z.int().min(0)).min(1).max(mostNamed).optional(),
    filter: z
      .strictObject({
        ...alarmFilter,
        label: namedLabels.optional().meta({
          description: 'Only devices with this label, or with all of these.',
        }),
        notification: z.int().min(0).optional().meta({ description: ofMessage }),
      })
      .meta({
        id: 'AlarmFilter',
        description:
          'The same filters as in the list of alarms. Without `state`: all that are not closed.',
      })
      .optional(),
    jobId: z.guid().optional().meta({
      description: 'The alarms of a job that ended within the last hour, to undo it.',
    }),
  })
  .superRefine((body, context) => {
    const { action, alarmIds, filter, jobId } = body;
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    for (const member of ['note', 'force', 'untilTs', 'reason'] as const)
      if (body[member] !== undefined && !takers[member].includes(action))
        say(member, `${action} takes none`);
    if (action === 'snooze' && body.untilTs === undefined) say('untilTs', 'expected a time');
    if ([alarmIds, filter, jobId].filter((given) => given !== undefined).length !== 1)
      say('filter', 'expected exactly one of alarmIds, filter and jobId');
  });
type Body = z.output<typeof Body>;

type Started = { jobId: string; timestamp: number };

export type AlarmActionDeps = {
  /** Stores the action as a job, within the quota `jobs`; throws `quota-exceeded`. */
  startJob: (
    job: {
      accountId: number;
      keyId: string | null;
      action: { action: ActionName; untilTs?: number };
      labels: readonly string[] | null;
      actor: Actor;
      ts: number;
      select: (tx: Sql) => Promise<{ alarms: { alarmId: number; uuid: string }[] }>;
      now: Clock;
    },
    keep: Keep<Started> | null,
  ) => Promise<Started>;
  /** The alarms of a job that has ended; null if they are no longer stored. */
  findJobAlarms: (
    tx: Sql,
    owner: { accountId: number; keyId: string | null },
    jobId: string,
  ) => Promise<{ action: string; alarmIds: number[]; agoMs: number } | null>;
};

/** Starts an action on many alarms, as a job. */
export function alarmActionsRoute({ startJob, findJobAlarms }: AlarmActionDeps): Route {
  return defineRoute({
    name: 'startAlarmAction',
    scope: 'alarms:write',
    method: 'post',
    path: '/v2/alarms/actions',
    summary: 'Apply an action to many alarms',
    description:
      'The action continues after the answer, as a job: `GET /v2/jobs/{jobId}` (scope devices:read) shows its progress, ' +
      'and the alarms for which it failed. Each alarm is treated as by the route for a single one: `close` leaves open ' +
      'what holds, unless `force` is true. The alarms are those that match the filter now (of more than 100,000 the ' +
      'newest), those that are named, or those of a job that has ended. `reopen` with the `jobId` of a `close` takes ' +
      'back what that job closed, within 60 seconds after it ended (later: 409); `unsnooze` with that of a `snooze` ' +
      'ends its snoozes, and those that it replaced come back. What others did since stays. An acknowledgement is not ' +
      'taken back.',
    tag: 'Alarms',
    auth: 'account',
    takesKey: true,
    body: Body,
    example: { action: 'acknowledge', note: 'A power cut.', alarmIds: [exampleIds.alarm] },
    response: z.object({ jobId: z.guid(), timestamp }),
    errors: [403, 404, 409],
    answerBytes: 1_048_576,
    handler: async ({ account, body, request, once }) => {
      const { untilTs } = body;
      if (untilTs !== undefined && !isAhead(untilTs, request.receivedTs)) throw notAhead();
      const act = actOf(account, request);
      const job = {
        accountId: act.accountId,
        keyId: account.key ? account.sessionId : null,
        action: storedAction(body),
        labels: act.within,
        ...act.by,
        select: async (tx: Sql) => ({ alarms: await select(tx, account, body, findJobAlarms) }),
        now: request.now,
      };
      return once<Started>((keep) => startJob(job, keep));
    },
  });
}

/** Which action undoes which. */
const undone: Partial<Record<ActionName, ActionName>> = { reopen: 'close', unsnooze: 'snooze' };

function storedAction({ action, note, force, untilTs, reason, jobId }: Body) {
  return {
    action,
    ...(jobId === undefined || !undone[action] ? {} : { undoes: jobId }),
    ...(note === undefined ? {} : { note }),
    ...(force === undefined ? {} : { force }),
    ...(untilTs === undefined ? {} : { untilTs, reason: reason ?? null }),
  };
}

async function select(
  tx: Sql,
  account: Account,
  { action, alarmIds, filter, jobId }: Body,
  findJobAlarms: AlarmActionDeps['findJobAlarms'],
): Promise<{ alarmId: number; uuid: string }[]> {
  const { accountId } = account;
  const within = labelsOf(account);
  if (filter) {
    const { device: deviceUuid, label = [], state = 'standing', ...others } = filter;
    const labels = typeof label === 'string' ? [label] : label;
    for (const each of labels)
      await refuseLabelList(tx, accountId, { label: each, labels: within }, '/filter/label');
    const search: AlarmSearch = { ...others, accountId, within, state, deviceUuid, labels };
    return selectAlarms(tx, search, mostMatched);
  }
  const owner = { accountId, keyId: within ? account.sessionId : null };
  const job = jobId === undefined ? null : await findJobAlarms(tx, owner, jobId);
  if (job) refuseUndoing(action, job);
  const ids = job?.alarmIds ?? alarmIds;
  if (!ids) throw forgotten();
  const known = await findAlarmDevices(tx, { accountId, within }, ids);
  const uuids = new Map(known.map(({ alarmId, uuid }) => [alarmId, uuid]));
  // One that does not exist fails by name.
  return [...new Set(ids)].map((alarmId) => ({ alarmId, uuid: uuids.get(alarmId) ?? '' }));
}

/** Throws if the action cannot take this job back. */
function refuseUndoing(action: ActionName, job: { action: string; agoMs: number }): void {
  const expected = undone[action];
  if (expected !== undefined && job.action !== expected) {
    const message = `is a job that did something else: ${job.action}; expected ${expected}`;
    const problems = [{ path: '/jobId', message }];
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
  }
  if (action === 'reopen' && job.agoMs > reopenMs)
    throw new DomainError('conflict', 'The job ended more than a minute ago.');
}

type Failed = { alarmId: number; deviceAuthUuid?: string; reason: string; values?: SaidValue[] };

/** Some alarms of such a job, `jobId`. `labels`: only devices with one of these; null: any. */
type Piece = {
  accountId: number;
  labels: string[] | null;
  actor: Actor;
  action: { action: string };
  alarmIds: number[];
  jobId: string;
};

/** Does a piece of such a job at `ts` (ms), in the caller's transaction. `after`: what to do after the commit. */
export async function actOnPiece(
  tx: Sql,
  deps: ActDeps,
  { accountId, labels, actor, action, alarmIds, jobId }: Piece,
  ts: number,
): Promise<{ failed: Failed[]; after: () => void }> {
  const act = { accountId, within: labels, by: { actor, ts } };
  const asked = action as AlarmAction;
  const what = { action: asked, alarmIds, jobId };
  const { deviceIds, failed } = await actWithin(tx, deps, act, what);
  return {
    failed: failed.map(({ alarmId, uuid, error: { code, values } }) => ({
      alarmId,
      ...(uuid === undefined ? {} : { deviceAuthUuid: uuid }),
      reason: code === 'not-found' ? 'no-such-alarm' : code,
      ...(values ? { values: [...values] } : {}),
    })),
    after: () => deps.bus.publish('events', { accountIds: [accountId], deviceIds }),
  };
}

/** Who acts, and on which devices. */
export const actOf = (account: Account, request: RequestInfo): Act => ({
  accountId: account.accountId,
  within: labelsOf(account),
  by: doneBy(account, request),
});

/** Five years: for longer than that, change the purpose. */
const longestMs = 5 * 366 * 86_400_000;

/** Whether the time may be the end of a snooze or a mute. */
export const isAhead = (untilTs: number, nowTs: WallMs): boolean =>
  untilTs > nowTs && untilTs <= nowTs + longestMs;

export function notAhead(): DomainError {
  const problems = [{ path: '/untilTs', message: 'is not within the next five years' }];
  return new DomainError('invalid-input', 'The request is not valid.', { problems });
}

const forgotten = () =>
  new DomainError(
    'not-found',
    'No such job on alarms, or the job has not ended, or it ended more than an hour ago.',
  );
