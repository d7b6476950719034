import type { AlarmsTold } from '../../api/types.ts';
import { Link } from '../../parts/link.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';

/** Who knows of the open alarms, who will hear of them and when, who will not and why, and where that is mended. */
export function Told({ recipients, nobody }: AlarmsTold) {
  const lines = recipients
    .filter(
      ({ told, waiting, planned, failed, untold }) =>
        told + waiting + planned + failed + untold > 0,
    )
    // Those who do not know first.
    .toSorted((one, other) => other.untold - one.untold || other.failed - one.failed);
  if (lines.length + nobody.length === 0) return null;
  return (
    <ul class="fine alarms-told" aria-label={t('alarms.whoKnows')}>
      {lines.slice(0, mostLines).map((one) => (
        <li key={`${one.kind} ${one.recipient}`}>
          {sayRecipient(one)}
          {one.untold > 0 && (
            <>
              {' '}
              <Mend to={one.limitUntilTs === undefined ? 'contacts' : 'usage'} />
            </>
          )}
          {one.untold === 0 && one.failed > 0 && (
            <>
              {' '}
              <Mend to="contacts" />
            </>
          )}
        </li>
      ))}
      {lines.length > mostLines && (
        <li>
          {count('alarms.toldMore', lines.length - mostLines)} <Mend to="contacts" />
        </li>
      )}
      {nobody.map(({ reason, count: of }) => (
        <li key={reason}>
          {count('alarms.nobody', of)}{' '}
          {t(reason === null ? 'alarms.told.withdrawn' : `alarms.notTold.${reason}`)}{' '}
          {reason !== null && mends[reason] !== undefined && <Mend to={mends[reason]} />}
        </li>
      ))}
    </ul>
  );
}

const mostLines = 5;

const mends: Record<string, 'contacts' | 'usage'> = {
  'held-back': 'usage',
  'not-allowed': 'usage',
  'not-configured': 'contacts',
  'no-recipient': 'contacts',
};

function Mend({ to }: { to: 'contacts' | 'usage' }) {
  return (
    <Link to={`account/${to}`} class="link">
      {t(`account.${to}`)}
    </Link>
  );
}

type Recipient = AlarmsTold['recipients'][number];

function sayRecipient(one: Recipient): string {
  const { kind, recipient, told, waiting, planned, failed, untold, summaryTs, limitUntilTs } = one;
  const who = t(`delivery.${kind}`, { who: recipient.replaceAll('…', '…\u2060') });
  const parts = [
    told > 0 && t('alarms.knows.told', { count: formatNumber(told) }),
    waiting > 0 &&
      (summaryTs === undefined
        ? t('alarms.knows.queued', { count: formatNumber(waiting) })
        : t('alarms.knows.waiting', { count: formatNumber(waiting), time: formatTime(summaryTs) })),
    planned > 0 && t('alarms.knows.planned', { count: formatNumber(planned) }),
    failed > 0 && t('alarms.knows.failed', { count: formatNumber(failed) }),
    untold > 0 &&
      (limitUntilTs === undefined
        ? t('alarms.knows.untold', { count: formatNumber(untold) })
        : t('alarms.knows.limit', { count: formatNumber(untold), time: formatTime(limitUntilTs) })),
  ];
  return `${who}: ${parts.filter((part) => part !== false).join('; ')}.`;
}
