import type { Measurement } from '../../contract/measurement.ts';
import type { Item, SentMeasurement } from '../../contract/uplink.ts';
import type { MeasurementRow } from './measurement-row.ts';
import type { DeviceContext } from './device-context.ts';
import { MessageEvaluation } from './evaluate.ts';
import type { Applied, MessageScope } from './scope.ts';
import { TakeTime } from './event-time.ts';
import { checkSense, checkTime } from './validate.ts';

/**
 * Stores what was measured, then evaluates it where the service runs the profile. At least one item, and
 * as many as the budget allows.
 */
export function applyMeasurements(
  before: DeviceContext,
  items: Item<SentMeasurement>[],
  scope: MessageScope,
): Applied {
  const { senses } = before;
  const { deviceId } = before.device;
  const { limits, arrivedTs, budget, rows } = scope;
  const evaluation = new MessageEvaluation(before, scope);
  const times = new TakeTime(before, scope);
  let applied = 0;
  while (applied < items.length && (applied === 0 || !budget.isSpent)) {
    const { index, value, isStamped = false } = items[applied++] as Item<SentMeasurement>;
    const { sId, val, ts = arrivedTs } = value;
    const path = index === null ? '' : `/${index}`;
    // A time that the service gave is never refused, wherever its clock has gone since.
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
  return { context: times.end(evaluation.end()), items: Math.max(1, applied) };
}
