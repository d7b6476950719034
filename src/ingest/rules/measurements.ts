import { type Configuration, type Sense, sensesOf } from '../../contract/configuration.ts';
import { checkConfigurationSizes } from '../../contract/purpose.ts';
import type { Item, Rejection, SentMeasurement } from '../../contract/uplink.ts';
import type { Measurement } from '../../contract/values.ts';
import { makesAlarms, MessageEvaluation, signal } from './evaluate.ts';
import { EventTimes } from './event-time.ts';
import type { Applied, ApplyLimits, DeviceState, MeasurementRow, MessageScope } from './model.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** Stores measurements, and evaluates them if the service runs the profile: at least one item, within the budget. */
export function applyMeasurements(
  before: DeviceState,
  items: Item<SentMeasurement>[],
  scope: MessageScope,
): Applied {
  const { senses } = before;
  const { deviceId } = before.device;
  const { limits, arrivedTs, budget, rows } = scope;
  const evaluation = new MessageEvaluation(before, scope);
  const times = new EventTimes(before, scope);
  let applied = 0;
  while (applied < items.length && (applied === 0 || !budget.isSpent)) {
    const { index, value, isStamped = false } = items[applied++] as Item<SentMeasurement>;
    const { sId, val, ts = arrivedTs } = value;
    const path = index === null ? '' : `/${index}`;
    // A time that the service assigned is never refused, even if its clock has changed since.
    const wrong =
      checkSense(senses, sId, val, path) ??
      (isStamped ? null : checkTime(ts, scope, limits.measurementMaxAgeMs, `${path}/ts`));
    if (wrong) {
      scope.reject(wrong);
      continue;
    }
    budget.spent += 1;
    const measurement: Measurement = { sId, val, ts };
    const row: MeasurementRow =
      typeof val === 'number'
        ? { deviceId, sId, ts, val, long: undefined }
        : { deviceId, sId, ts, val: val.lat, long: val.long };
    rows.measurements.push(row);
    scope.outcome?.measure(row);
    const t = times.take(measurement, isStamped, path);
    if (t !== null) evaluation.measure(measurement, t);
  }
  return { deviceState: times.end(evaluation.end()), items: Math.max(1, applied) };
}

/** No measurement is this old: such times are usually in seconds, or from a clock that was never set. */
const year2001 = 978_307_200_000;

/** A hint about such a time; empty for any other. */
function unitOf(ts: number): string {
  if (ts >= year2001) return '';
  const meant = ts * 1_000 >= year2001 ? ' It looks like seconds.' : '';
  return ` Expected milliseconds since 1970-01-01 (UTC); this is before the year 2001.${meant}`;
}

type TimeLimits = Pick<ApplyLimits, 'maxAheadMs' | 'doubtSpanMs'>;

/**
 * Rejects a time too far ahead of the arrival, or older than the history. While the service's clock is in doubt,
 * rejects only what is wrong both by the clock and by where it should be. Null if the time is fine.
 */
export function checkTime(
  ts: number,
  { arrivedTs, limits }: { arrivedTs: WallMs; limits: TimeLimits },
  maxAgeMs: number,
  path: string,
): Rejection | null {
  const spanMs = limits.doubtSpanMs?.() ?? 0;
  if (ts > arrivedTs + Math.max(0, spanMs) + limits.maxAheadMs) {
    const message = `ts ${ts} is ${ts - arrivedTs} ms ahead of the service's clock; at most ${limits.maxAheadMs} ms are accepted.`;
    const details = { ts, maxAheadMs: limits.maxAheadMs };
    return { reason: 'future-timestamp', message, path, details };
  }
  if (ts < arrivedTs + Math.min(0, spanMs) - maxAgeMs) {
    const message = `ts ${ts} is older than the history that is kept (${maxAgeMs} ms).${unitOf(ts)}`;
    return { reason: 'expired-timestamp', message, path, details: { ts, maxAgeMs } };
  }
  return null;
}

/** Rejects a sense that the configuration does not name, or a number outside its range. Null if both are fine. */
export function checkSense(
  senses: ReadonlyMap<string, Sense>,
  sId: string,
  val: unknown,
  path: string,
): Rejection | null {
  const sense = senses.get(sId);
  if (!sense) {
    const message = `The device's configuration has no sense ${sId}.`;
    return { reason: 'unknown-sense', message, path: `${path}/sId`, details: { sId } };
  }
  if (typeof val !== 'number') return null;
  const below = sense.min !== undefined && val < sense.min;
  const above = sense.max !== undefined && val > sense.max;
  if (!below && !above) return null;
  const message = `${val} is outside the range ${sense.min ?? '-∞'} to ${sense.max ?? '∞'} of sense ${sId}.`;
  const { min, max } = sense;
  const range = { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) };
  const details = { sId, val, ...range };
  return { reason: 'out-of-range', message, path: `${path}/val`, details };
}

/**
 * Replaces the device's configuration; its senses count from the next message on. A configuration that is too large is
 * rejected, and the one before stays.
 */
export function applyConfiguration(
  deviceState: DeviceState,
  configuration: Configuration,
  scope: MessageScope,
): DeviceState {
  const { rows, limits, reject } = scope;
  const sizes = limits.sizesOf?.(deviceState.device.accountId);
  const [wrong] = sizes ? checkConfigurationSizes(configuration, sizes) : [];
  if (wrong) {
    reject({ reason: 'invalid-payload', ...wrong });
    return deviceState;
  }
  scope.outcome?.store();
  rows.configurations.push({ deviceId: deviceState.device.deviceId, configuration });
  const senses = sensesOf(configuration);
  const isGone = (sId: string) => !senses.has(sId);
  if (makesAlarms(deviceState) && [...deviceState.senses.keys()].some(isGone))
    signal(deviceState, { kind: 'configuration', sIds: [...senses.keys()] }, scope);
  return { ...deviceState, senses };
}
