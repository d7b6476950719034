import type { ListedAlarm } from '../../api/types.ts';
import { t } from '../../text/t.ts';

/** Whether somebody was told, whom, and if nobody, why. */
export function sayTold({ told, notNotified, deliveries }: ListedAlarm): string {
  if (told === 'told') {
    const reached = deliveries.filter(({ state }) => state === 'sent' || state === 'logged');
    const who = [...new Set(reached.map(({ recipient }) => recipient))].join(', ');
    return who === '' ? t('alarms.told.somebody') : t('alarms.told.told', { who });
  }
  const said = t(`alarms.told.${told}`);
  return told === 'none' && notNotified !== null
    ? `${said}: ${t(`alarms.notTold.${notNotified}`)}`
    : said;
}
