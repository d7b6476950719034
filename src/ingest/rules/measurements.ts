import type { Measurement } from '../../contract/measurement.ts';
import { newestAfter } from '../../engine/last-seen.ts';
import type { Item, SentMeasurement } from '../../contract/uplink.ts';
import type { DeviceContext } from './device-context.ts';
import { Evaluating } from './evaluation.ts';
import { checkSense, checkTime } from './validate.ts';
import type { Applied, Scope } from './scope.ts';

/**
 * Stores what was measured, then evaluates it where the service runs the profile. At least one item, and
 * as many as the budget allows.
 */
export function applyMeasurements(
  before: DeviceContext,
  items: Item<SentMeasurement>[],
  scope: Scope,
): Applied {
  const { senses } = before;
  const { limits, arrivedTs } = scope;
  const evaluating = new Evaluating(before, scope);
  let { seen } = before;
  let applied = 0;
  while (applied < items.length && (applied === 0 || !scope.budget.isSpent)) {
    const { index, value } = items[applied++] as Item<SentMeasurement>;
    const { sId, val, ts = arrivedTs } = value;
    const path = index === null ? '' : `/${index}`;
    const wrong =
      checkSense(senses, sId, val, path) ??
      checkTime(ts, scope, limits.measurementMaxAgeMs, `${path}/ts`);
    if (wrong) {
      scope.reject(wrong);
      continue;
    }
    scope.budget.spend(1);
    const measurement: Measurement = { sId, val, ts };
    store(before, measurement, scope);
    const number = before.watched.get(sId);
    const newest = number === undefined ? null : newestAfter(seen.get(number), measurement);
    if (number === undefined || !newest) continue;
    seen = seen.with(number, newest);
    evaluating.evaluate(measurement);
  }
  const context = evaluating.end();
  return {
    context: seen === before.seen ? context : { ...context, seen },
    items: Math.max(1, applied),
  };
}

function store({ device }: DeviceContext, { sId, val, ts }: Measurement, { rows }: Scope): void {
  const { deviceId } = device;
  rows.measurements.push(
    typeof val === 'number'
      ? { deviceId, sId, ts, val, long: undefined }
      : { deviceId, sId, ts, val: val.lat, long: val.long },
  );
}
