import type { Rejection } from '../api/devices.ts';
import type { Sense } from '../api/types.ts';
import { formatFullTime, formatValue } from '../text/format.ts';
import { sayRejection } from '../text/said-by-service.ts';
import { t } from '../text/t.ts';
import { nameOfSense } from './senses.ts';

/** What was wrong in the reader's language, where its values are known; else by its reason. */
export function describeRejection(
  rejection: Rejection,
  senses: ReadonlyMap<string, Sense>,
): string {
  const { reason, message, path = '', details = {} } = rejection;
  const { sId, val: value, min, max, ts } = details;
  if (reason === 'future-timestamp' && ts !== undefined)
    return t('rejection.future', { time: formatFullTime(ts) });
  if (reason === 'expired-timestamp' && ts !== undefined)
    return t('rejection.expired', { time: formatFullTime(ts) });
  const name = path.split('/').findLast((part) => /\D/.test(part)) ?? path;
  const inGeneral = () => sayRejection({ code: reason, text: message }, name);
  if (sId === undefined) return inGeneral();
  if (reason === 'unknown-sense') return t('rejection.unknownSense', { sId });
  if (reason !== 'out-of-range' || value === undefined) return inGeneral();
  const sense = senses.get(sId);
  const unit = { unit: sense?.unit };
  const said = { name: nameOfSense(sId, sense), value: formatValue(value, unit) };
  if (max !== undefined && value > max)
    return t('rejection.above', { ...said, limit: formatValue(max, unit) });
  if (min !== undefined && value < min)
    return t('rejection.below', { ...said, limit: formatValue(min, unit) });
  return inGeneral();
}

/** The sense that it is about, where its configuration is the place to put it right. */
export const senseOfRejection = ({ reason, details }: Rejection): string | undefined =>
  reason === 'out-of-range' || reason === 'unknown-sense' ? details?.sId : undefined;
