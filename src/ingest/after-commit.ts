import type { Bus } from '../bus/bus.ts';
import type { NewEvent } from '../contract/event.ts';
import type { DeviceIdentity, Downlink, TimeRequest } from '../contract/uplink.ts';
import { DomainError } from '../errors.ts';
import type { Log } from '../log/logger.ts';
import type { Changes } from './rules/changes.ts';
import { noteOutcomes } from './store/outcomes.ts';
import type { Plan } from './store/plan.ts';
import { publishValues, type ValueListeners } from './store/publish-values.ts';
import type { Written } from './store/write.ts';

/** What is counted. */
export type IngestObserver = {
  /** A batch is done, `seconds` after it was taken up. */
  batch(messages: number, seconds: number): void;
  stored(measurements: number): void;
  rejected(reason: string, count: number): void;
};

export type TellDeps = {
  bus: Bus;
  log: Log;
  /** The time of day, ms. */
  clock: () => number;
  /** Sends a device the profile that waits for its answer. */
  handOver: (device: DeviceIdentity) => Promise<void>;
  observe?: IngestObserver | undefined;
  /** To whose values anybody listens; absent: to nobody's. */
  listeners?: ValueListeners | undefined;
};

/**
 * What follows a commit and is no row: the messages are acknowledged, devices are sent what is for them, and
 * streams hear of new events. It is stored whatever comes of this: what goes wrong here is logged only.
 */
export function tellStored(plan: Plan, written: Written, deps: TellDeps): void {
  const { recorded } = written;
  try {
    if (plan.rows.outcomes.size > 0) noteOutcomes(plan.rows, written);
    acknowledge(plan);
    perform(plan.rows, deps);
    if (deps.listeners && !deps.listeners.isEmpty()) publishValues(plan, deps.listeners, deps.bus);
    const { signals } = plan.rows;
    if (recorded.length + signals.length > 0) publishEvents(recorded, signals, deps);
  } catch (err) {
    deps.log.error(
      { event: 'batch.untold', err },
      'A batch is stored, but not everything that follows from it happened.',
    );
  }
}

function acknowledge({ rows, units, orphaned }: Plan): void {
  for (const [message, count] of rows.rejectionsStored) message.rejectionsStored = count;
  for (const message of rows.payloadsStored) message.isPayloadStored = true;
  for (const { message } of units) message.unitStored();
  for (const { message } of orphaned)
    message.fail(new DomainError('device-gone', 'The device was removed.'));
}

function perform(rows: Changes, { bus, log, handOver, observe, clock }: TellDeps): void {
  observe?.stored(rows.measurements.length);
  for (const { reason, more } of rows.rejections) observe?.rejected(reason, more ?? 1);
  const logHandOver = (err: unknown) =>
    log.warn(
      { event: 'profile.not-handed-over', err },
      'A profile could not be sent to its device; it is sent when the device subscribes.',
    );
  for (const effect of rows.effects) {
    if (effect.kind === 'down') bus.publish('down', effect);
    else if (effect.kind === 'time')
      bus.publish('down', { uuid: effect.uuid, message: timeOf(effect.request, clock()) });
    else void handOver(effect.device).catch(logHandOver);
  }
}

const timeOf = ({ echo }: TimeRequest, ts: number): Downlink => ({
  topic: 'time',
  payload: { ts, echo },
});

/** Streams are to look: events were recorded, or alarms may have changed. */
function publishEvents(recorded: NewEvent[], signals: Changes['signals'], { bus }: TellDeps): void {
  const concerned = [...recorded, ...signals.map(({ device }) => device)];
  const accountIds = [...new Set(concerned.map(({ accountId }) => accountId))];
  const deviceIds = [...new Set(concerned.map(({ deviceId }) => deviceId))];
  bus.publish('events', { accountIds, deviceIds });
}
