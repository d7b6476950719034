import { nameOfSense, type Rejection } from '../api/devices.ts';
import type { Sense } from '../api/types.ts';
import { formatFullTime, formatNumber, formatValue } from '../text/format.ts';
import { isServiceLanguage, sayRejection } from '../text/said-by-service.ts';
import { t, tryText } from '../text/t.ts';
import { Link } from './link.tsx';
import { Ago } from './status.tsx';

type RejectionsProps = {
  rejections: readonly Rejection[];
  senses?: ReadonlyMap<string, Sense>;
  /** The device whose configuration may be the cause; absent: no link to it. */
  uuid?: string;
};

/** What was rejected: why, what to do about it, and the message as text, whatever it is. */
export function Rejections({ rejections, senses = new Map(), uuid }: RejectionsProps) {
  return (
    <ul class="rejections">
      {rejections.map((rejection, place) => {
        const { timestamp, path, topic, payload, more } = rejection;
        const ofUnit = unitOf(rejection, senses);
        const sId = ofUnit?.isWrong ? ofUnit.sId || undefined : senseOfRejection(rejection);
        return (
          <li key={`${timestamp}-${place}`}>
            <p class="rejection-what">
              <strong>{describeRejection(rejection, senses)}</strong>
              {more !== undefined && (
                <span>{t('rejection.more', { count: formatNumber(more) })}</span>
              )}
              <Ago ts={timestamp} />
            </p>
            <Todo reason={rejection.reason} unit={ofUnit} />
            {uuid !== undefined && sId !== undefined && (
              <Link
                to={`devices/${uuid}?tab=settings&sense=${sId}${ofUnit ? '&field=unit' : ''}`}
                class="link"
              >
                {ofUnit
                  ? t('rejection.editUnit', ofUnit)
                  : t(senses.has(sId) ? 'rejection.editSense' : 'rejection.addSense', { sId })}
              </Link>
            )}
            <details>
              <summary>{t('device.sent')}</summary>
              <p class="fine">
                {topic} {path}
              </p>
              {!isServiceLanguage() && (
                <p class="fine" lang="en">
                  {rejection.message}
                </p>
              )}
              <pre tabIndex={0}>{payload}</pre>
            </details>
          </li>
        );
      })}
    </ul>
  );
}

function Todo({ reason, unit }: { reason: string; unit: Unit | null }) {
  const text = unit
    ? t(`rejection.todo.unit.${unit.is}`, unit)
    : tryText(`rejection.todo.${reason}`, '');
  return text === '' ? null : <p class="fine rejection-todo">{text}</p>;
}

/** What was wrong, in the reader's language: with the values if they are known, else the text of its reason. */
export function describeRejection(
  rejection: Rejection,
  senses: ReadonlyMap<string, Sense>,
): string {
  const { reason, message, path = '', details = {} } = rejection;
  const { sId, val: value, min, max, ts } = details;
  const ofUnit = unitOf(rejection, senses);
  if (ofUnit && ofUnit.is !== 'unknown')
    return t(ofUnit.is === 'other' ? 'rejection.unitOf' : 'rejection.unit', ofUnit);
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

/** A unit that came with a value, and that of the sense in the settings; empty if it has none. */
type Unit = {
  sId: string;
  name: string;
  sent: string;
  expected: string;
  is: 'other' | 'unset' | 'same' | 'unknown';
  /** The numbers may not be what the settings say. */
  isWrong: boolean;
};

/** The unit that a remark is about; a value has none: the settings of the device say it. Null: another remark. */
export function unitOf(
  { reason, path = '', payload }: Pick<Rejection, 'reason' | 'path' | 'payload'>,
  senses: ReadonlyMap<string, Sense>,
): Unit | null {
  const at = /^(?:\/(\d+))?\/unit$/.exec(path);
  if (reason !== 'unknown-member' || !at) return null;
  const { sId, unit } = itemOf(payload, at[1]);
  if (typeof sId !== 'string' || typeof unit !== 'string' || !senses.has(sId))
    return { sId: '', name: '', sent: '', expected: '', is: 'unknown', isWrong: true };
  const sense = senses.get(sId);
  const { unit: expected = '' } = sense ?? {};
  const is = expected === '' ? 'unset' : expected === unit ? 'same' : 'other';
  return { sId, name: nameOfSense(sId, sense), sent: unit, expected, is, isWrong: is !== 'same' };
}

/** The measurement at this place of what was sent, which may have been cut. */
function itemOf(payload: string, place = ''): { sId?: unknown; unit?: unknown } {
  try {
    const sent = JSON.parse(payload) as Record<string, object> | null;
    return (place === '' ? sent : sent?.[place]) ?? {};
  } catch {
    return {};
  }
}

/** The sense that it is about, if changing the configuration can fix it. */
const senseOfRejection = ({ reason, details }: Rejection): string | undefined =>
  reason === 'out-of-range' || reason === 'unknown-sense' ? details?.sId : undefined;
