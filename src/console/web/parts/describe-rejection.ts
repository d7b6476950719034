import type { Rejection } from '../api/devices.ts';
import type { Sense } from '../api/types.ts';
import { formatValue } from '../text/format.ts';
import { t } from '../text/t.ts';
import { nameOfSense } from './senses.ts';

/** What was wrong in the reader's language, where the message can be read; else as the service says it. */
export function describeRejection(
  { reason, message, path, payload }: Rejection,
  senses: ReadonlyMap<string, Sense>,
): string {
  const item = path === undefined ? undefined : itemAt(payload, path);
  const sId = String(item?.['sId'] ?? '');
  if (reason === 'unknown-sense' && sId !== '') return t('rejection.unknownSense', { sId });
  const value = item?.['val'];
  if (reason !== 'out-of-range' || typeof value !== 'number' || sId === '') return message;
  const sense = senses.get(sId);
  const unit = { unit: sense?.unit };
  const name = nameOfSense(sId, sense);
  const { min, max } = sense ?? {};
  const said = { name, value: formatValue(value, unit) };
  // The range may have been changed since.
  if (max !== undefined && value > max)
    return t('rejection.above', { ...said, limit: formatValue(max, unit) });
  if (min !== undefined && value < min)
    return t('rejection.below', { ...said, limit: formatValue(min, unit) });
  return t('rejection.wasOutside', said);
}

/** The sense that it is about, where its configuration is the place to put it right. */
export function senseOfRejection({ reason, path, payload }: Rejection): string | undefined {
  if (reason !== 'out-of-range' && reason !== 'unknown-sense') return undefined;
  const sId = path === undefined ? undefined : itemAt(payload, path)?.['sId'];
  return typeof sId === 'string' ? sId : undefined;
}

/** The object that holds what a JSON Pointer leads to; undefined where the payload was cut off. */
function itemAt(payload: string, path: string): Record<string, unknown> | undefined {
  let at: unknown;
  try {
    at = JSON.parse(payload);
  } catch {
    return undefined;
  }
  for (const piece of path.split('/').slice(1, -1)) at = (at as Record<string, unknown>)?.[piece];
  return typeof at === 'object' && at !== null ? (at as Record<string, unknown>) : undefined;
}
