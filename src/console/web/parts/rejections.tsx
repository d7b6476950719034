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
        const sId = senseOfRejection(rejection);
        return (
          <li key={`${timestamp}-${place}`}>
            <p class="rejection-what">
              <strong>{describeRejection(rejection, senses)}</strong>
              {more !== undefined && (
                <span>{t('rejection.more', { count: formatNumber(more) })}</span>
              )}
              <Ago ts={timestamp} />
            </p>
            <Todo reason={rejection.reason} />
            {uuid !== undefined && sId !== undefined && (
              <Link to={`devices/${uuid}?tab=settings&sense=${sId}`} class="link">
                {t(senses.has(sId) ? 'rejection.editSense' : 'rejection.addSense', { sId })}
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

function Todo({ reason }: { reason: string }) {
  const text = tryText(`rejection.todo.${reason}`, '');
  return text === '' ? null : <p class="fine">{text}</p>;
}

/** What was wrong, in the reader's language: with the values if they are known, else the text of its reason. */
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

/** The sense that it is about, if changing the configuration can fix it. */
const senseOfRejection = ({ reason, details }: Rejection): string | undefined =>
  reason === 'out-of-range' || reason === 'unknown-sense' ? details?.sId : undefined;
