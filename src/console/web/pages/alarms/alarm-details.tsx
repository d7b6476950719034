import type { ListedAlarm } from '../../api/types.ts';
import { Link } from '../../parts/link.tsx';
import { t } from '../../text/t.ts';
import { sayDelivery } from './say-told.ts';

/** What is asked more seldom: which purpose, and what became of each message. */
export function AlarmDetails({ alarm, hasDevice }: { alarm: ListedAlarm; hasDevice: boolean }) {
  const { purposeName, stateName, deliveries, deviceAuthUuid } = alarm;
  return (
    <details class="alarm-details">
      <summary>{t('alarms.more')}</summary>
      <dl>
        <Fact name={t('alarms.purpose')} text={purposeName} />
        <Fact name={t('alarms.state')} text={stateName} />
      </dl>
      {deliveries.length > 0 && (
        <>
          <p class="alarm-messages">{t('alarms.messages')}</p>
          <ul>
            {deliveries.map((delivery, place) => (
              <li key={place}>{sayDelivery(delivery)}</li>
            ))}
          </ul>
        </>
      )}
      {hasDevice && (
        <Link to={`alarms?device=${deviceAuthUuid}`} class="link">
          {t('alarms.othersOf')}
        </Link>
      )}
    </details>
  );
}

function Fact({ name, text }: { name: string; text: string }) {
  if (text === '') return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}
