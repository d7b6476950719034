import type { Rejection } from '../api/devices.ts';
import type { Sense } from '../api/types.ts';
import { formatNumber } from '../text/format.ts';
import { isServiceLanguage } from '../text/said-by-service.ts';
import { t, tryText } from '../text/t.ts';
import { describeRejection, senseOfRejection } from './describe-rejection.ts';
import { Link } from './link.tsx';
import { Ago } from './status.tsx';

type RejectionsProps = {
  rejections: readonly Rejection[];
  senses?: ReadonlyMap<string, Sense>;
  /** The device whose configuration may be at fault; absent: no link leads there. */
  uuid?: string;
};

/** What was refused: why, what to do about it, and what was sent, as text whatever it is. */
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
