/**
 * What follows a commit. The transaction has stored everything of its messages that is a row: measurements, events,
 * states, alarms, rejections, texts for displays, and the messages to people. Nothing in this file is a row, so a crash
 * between the commit and its end loses it:
 *
 * - The acknowledgement (PUBACK, PUBREC, HTTP answer): the device sends the message again. A measurement with `ts` is
 *   then recognised as stored; one without is stored a second time.
 * - What is sent to devices over the bus: the device reads its state, configuration, profile and texts from the
 *   database when it next subscribes or polls. Errors are listed as rejections. The answer to `up/time` is gone: the
 *   device asks again.
 * - The notice to streams of events and alarms: at the next notice they read on from their position in the database.
 * - Values for streams of measurements: streams that stay open miss them; streams that resume read them from the
 *   history.
 *
 * A message to a person is not lost: it is a row of the same transaction (`notifications/outbox.ts`). So what fails
 * here is logged and not retried, and what must not be lost does not belong here.
 */

import type { Bus, LiveDevice, LiveValue } from '../bus/bus.ts';
import type { NewEvent } from '../contract/event.ts';
import type { DeviceIdentity, Downlink, Outcome, TimeRequest } from '../contract/uplink.ts';
import { DomainError } from '../errors.ts';
import type { Log } from '../log/logger.ts';
import type { Plan } from './plan.ts';
import { failMessage } from './queue.ts';
import { addRejection, type Changes, type MeasurementRow, type Message } from './rules/model.ts';
import type { Written } from './write.ts';
import type { Clock } from '../lib/clock-readings.ts';

/** What the metrics count: counters and histograms of their library fit as they are. */
export type IngestObserver = {
  batchMessages: { observe(messages: number): void };
  /** From when a batch was taken to when all of it was stored, or had failed. */
  batchSeconds: { observe(seconds: number): void };
  measurements: { inc(count: number): void };
  rejected(reason: string, count: number): void;
};

export type AfterCommitDeps = {
  bus: Bus;
  log: Log;
  /** The time of day, ms. */
  clock: Clock;
  /** Sends a device the profile that waits for its answer. */
  handOver: (device: DeviceIdentity) => Promise<void>;
  observe?: IngestObserver | undefined;
  /** The devices whose values somebody follows live. Absent: there are none. */
  listeners?: ValueListeners | undefined;
};

/**
 * Acknowledges the messages, sends devices their messages, and notifies streams of new events. The batch is stored
 * whatever happens here, so errors are only logged.
 */
export function afterCommit(plan: Plan, written: Written, deps: AfterCommitDeps): void {
  const { recorded } = written;
  try {
    if (plan.rows.outcomes.size > 0) noteOutcomes(plan.rows, written);
    acknowledge(plan);
    perform(plan.rows, deps);
    if (deps.listeners && deps.listeners.accounts.size > 0)
      publishValues(plan, deps.listeners, deps.bus);
    const { signals } = plan.rows;
    if (recorded.length + signals.length > 0) publishEvents(recorded, signals, deps);
  } catch (err) {
    deps.log.error(
      { event: 'batch.untold', err },
      'A batch is stored, but some of its effects failed.',
    );
  }
}

function acknowledge({ rows, fragments, orphaned }: Plan): void {
  for (const [message, count] of rows.rejectionsStored) message.rejectionsStored = count;
  for (const message of rows.payloadsStored) message.isPayloadStored = true;
  for (const { message } of fragments) storeFragment(message);
  for (const { message } of orphaned)
    failMessage(message, new DomainError('device-gone', 'The device was removed.'));
}

/** One fragment of a message is committed. After the last one the message is acknowledged. */
function storeFragment(message: Message): void {
  message.open -= 1;
  if (message.open !== 0) return;
  if (message.outcome) message.delivery.settled?.(message.outcome);
  message.delivery.stored();
}

function perform(rows: Changes, { bus, log, handOver, observe, clock }: AfterCommitDeps): void {
  observe?.measurements.inc(rows.measurements.length);
  for (const { reason, more } of rows.rejections) observe?.rejected(reason, more ?? 1);
  const logHandOver = (err: unknown) =>
    log.warn(
      { event: 'profile.not-handed-over', err },
      'A profile could not be sent to its device; it will be sent when the device subscribes.',
    );
  for (const effect of rows.effects) {
    if (effect.kind === 'down') bus.publish('down', effect);
    else if (effect.kind === 'command') tellAnswer(effect, bus);
    else if (effect.kind === 'time')
      bus.publish('down', { uuid: effect.uuid, message: timeOf(effect.request, clock()) });
    else void handOver(effect.device).catch(logHandOver);
  }
}

type AnsweredEffect = { device: DeviceIdentity; commandId: string; isNextDue: boolean };

function tellAnswer(
  { device: { uuid, accountId }, commandId, isNextDue }: AnsweredEffect,
  bus: Pick<Bus, 'publish'>,
): void {
  bus.publish('command', { accountId, commandId });
  if (isNextDue) bus.publish('due', { uuid, topic: 'command' });
}

const timeOf = ({ echo }: TimeRequest, ts: number): Downlink => ({
  topic: 'time',
  payload: { ts, echo },
});

/** Tells streams to look: events were recorded, or alarms may have changed. */
function publishEvents(
  recorded: NewEvent[],
  signals: Changes['signals'],
  { bus }: AfterCommitDeps,
): void {
  const concerned = [...recorded, ...signals.map(({ device }) => device)];
  const accountIds = [...new Set(concerned.map(({ accountId }) => accountId))];
  const deviceIds = [...new Set(concerned.map(({ deviceId }) => deviceId))];
  bus.publish('events', { accountIds, deviceIds });
}

/** Adds what was committed to the outcome of messages whose senders want it. */
function noteOutcomes(
  { outcomes, events }: Pick<Changes, 'outcomes' | 'events'>,
  { added, recorded }: Pick<Written, 'added' | 'recorded'>,
): void {
  let hasEvents = false;
  for (const planned of outcomes.values()) if (planned.events.length > 0) hasEvents = true;
  const kept = new Set(hasEvents ? events : []);
  const fresh = new Set(hasEvents ? recorded : []);
  for (const [{ outcome }, planned] of outcomes) {
    if (!outcome) continue;
    const { measurements, rejected, stored, repeated } = planned;
    outcome.stored += stored;
    outcome.repeated += repeated;
    let isNew = measurements.length;
    if (added) for (const row of measurements) if (!added.has(row)) isNew -= 1;
    outcome.stored += isNew;
    outcome.repeated += measurements.length - isNew;
    for (const one of rejected) addRejection(outcome.rejected, one, planned.maxRejections);
    if (planned.events.length > 0) noteEvents(outcome, planned.events, kept, fresh);
  }
}

/** `kept`: events within the quota. `fresh`: events that were not recorded before. */
function noteEvents(
  outcome: Outcome,
  reported: NewEvent[],
  kept: ReadonlySet<NewEvent>,
  fresh: ReadonlySet<NewEvent>,
): void {
  let beyond = 0;
  for (const event of reported) {
    if (fresh.has(event)) outcome.stored += 1;
    else if (kept.has(event)) outcome.repeated += 1;
    else beyond += 1;
  }
  if (beyond === 0) return;
  const message = `${beyond} events exceed the account's event quota and are not recorded.`;
  outcome.rejected.push({ reason: 'events-not-recorded', message, path: '', more: beyond });
}

/** Whose values anybody listens to, in any process. */
type ValueListeners = {
  readonly accounts: ReadonlySet<number>;
};

/** Values in one message: half a millisecond to write, and the same to read. */
const valuesPerMessage = 500;

/** Publishes the committed values of accounts that somebody listens to, in order. */
function publishValues(
  { deviceBatches, rows }: Pick<Plan, 'deviceBatches' | 'rows'>,
  listeners: ValueListeners,
  bus: Pick<Bus, 'publish'>,
): void {
  const heard = new Map<number, DeviceIdentity>();
  for (const { queue } of deviceBatches)
    if (listeners.accounts.has(queue.device.accountId))
      heard.set(queue.device.deviceId, queue.device);
  if (heard.size === 0) return;
  const byAccount = new Map<number, LiveDevice[]>();
  let count = 0;
  const send = (): void => {
    for (const [accountId, devices] of byAccount)
      bus.publish('measurements', { accountId, devices });
    byAccount.clear();
    count = 0;
  };
  for (const row of rows.measurements) {
    const device = heard.get(row.deviceId);
    if (!device) continue;
    valuesOf(byAccount, device).push(toLiveValue(row));
    count += 1;
    if (count === valuesPerMessage) send();
  }
  send();
}

/** The list for the next value of a device. */
function valuesOf(
  byAccount: Map<number, LiveDevice[]>,
  { accountId, deviceId, uuid }: DeviceIdentity,
): LiveValue[] {
  const devices = byAccount.get(accountId) ?? [];
  byAccount.set(accountId, devices);
  // The rows of a device follow each other.
  const last = devices.at(-1);
  if (last?.deviceId === deviceId) return last.values;
  const values: LiveValue[] = [];
  devices.push({ deviceId, uuid, values });
  return values;
}

function toLiveValue({ sId, ts, val, long }: MeasurementRow): LiveValue {
  return long === undefined ? [sId, ts, val] : [sId, ts, val, long];
}
