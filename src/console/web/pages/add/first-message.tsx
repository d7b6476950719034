import { useEffect, useRef } from 'preact/hooks';
import { useQuery } from '../../api/cache.ts';
import { listRefusedLogins } from '../../api/device.ts';
import { listRejections } from '../../api/devices.ts';
import { useLatest } from '../../api/measurements.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { RefusedLogins } from '../../parts/refused-logins.tsx';
import { Rejections } from '../../parts/rejections.tsx';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { configurationOf, type TemplateName } from './templates.ts';
import { nameOfSense, sensesOf } from '../../parts/senses.ts';

const everyMs = 2_000;

/** Waits for the first value; what is refused meanwhile is said as it happens. */
export function FirstMessage({ uuid, template }: { uuid: string; template: TemplateName }) {
  const { data: latest = [] } = useLatest([uuid]);
  const { data: rejections = [] } = useQuery(
    `rejections/${uuid}`,
    (signal) => listRejections(uuid, signal),
    { everyMs },
  );
  const { data: logins = [] } = useQuery(
    `logins/${uuid}`,
    (signal) => listRefusedLogins(uuid, signal),
    { everyMs },
  );
  const senses = sensesOf(configurationOf(template, ''));
  const hasArrived = latest.length > 0;
  // What was refused before it worked is in the device's own list.
  const newestTs = Math.max(0, ...latest.map(({ ts }) => ts));
  const refused = rejections.filter(({ timestamp }) => timestamp > newestTs);
  const box = useRef<HTMLElement>(null);
  const hasNews = hasArrived || refused.length > 0 || logins.length > 0;
  // It grows below the edge of the screen, where nobody would see what they wait for.
  useEffect(() => {
    if (hasNews) box.current?.scrollIntoView({ block: 'nearest' });
  }, [hasNews, hasArrived]);
  return (
    <section
      ref={box}
      class={hasArrived ? 'panel first-panel panel-done' : 'panel first-panel'}
      aria-labelledby="step-3"
    >
      <h2 id="step-3" class="step">
        <span class="step-number">{hasArrived ? <Icon name="check" /> : 3}</span>
        {t('connect.step3')}
      </h2>
      <div role="status" class="first">
        {hasArrived ? (
          <>
            <p>{t('connect.arrived')}</p>
            <ul class="first-values">
              {latest.map(({ sId, val }) => (
                <li key={sId}>
                  <span class="fine">{nameOfSense(sId, senses.get(sId))}</span>
                  <span class="value">{formatValue(val, senses.get(sId))}</span>
                </li>
              ))}
            </ul>
          </>
        ) : (
          <>
            <p class="waiting">{t('connect.waiting')}</p>
            <p class="fine">{t('connect.waitingHint')}</p>
          </>
        )}
      </div>
      {!hasArrived && logins.length > 0 && (
        <>
          <p class="first-refused">{t('connect.loginRefused')}</p>
          <RefusedLogins logins={logins.slice(0, 3)} />
        </>
      )}
      {refused.length > 0 && (
        <>
          <p class="first-refused">{t('connect.refused')}</p>
          <Rejections rejections={refused.slice(0, 5)} senses={senses} uuid={uuid} />
        </>
      )}
      {hasArrived && (
        <p class="first-next">
          <Link to={`devices/${uuid}`} class="button button-main">
            {t('connect.open')}
          </Link>
          <Link to={`watch/${uuid}`} class="button">
            {t('watch.open')}
          </Link>
        </p>
      )}
    </section>
  );
}
