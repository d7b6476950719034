import type { ListedAlarm } from '../../api/types.ts';
import { formatTime } from '../../text/format.ts';
import { t, tryText } from '../../text/t.ts';

type Delivery = ListedAlarm['deliveries'][number];

const reached = ['sent', 'logged'];

/** Whether somebody was told, whom and when, and if nobody, why: a sentence. */
export function sayTold(alarm: ListedAlarm): string {
  const { told, notNotified, announcedTs, deliveries } = alarm;
  if (told === 'queued') return t('alarms.told.queued');
  if (told === 'withdrawn' && notNotified === 'snoozed') return sayWithdrawn(alarm);
  if (told === 'withdrawn') return t('alarms.told.withdrawn');
  if (told === 'told') return sayWho(deliveries, announcedTs);
  return notNotified === null ? t('alarms.told.listed') : t(`alarms.notTold.${notNotified}`);
}

/** Messages are not kept for ever: then it is known that somebody was told, and not who. */
function sayWho(deliveries: readonly Delivery[], announcedTs: number | null): string {
  const arrived = arrivedOf(deliveries);
  const first = arrived.at(-1);
  if (first) {
    const who = [...new Set(arrived.map(({ recipient }) => unbroken(recipient)))].join(', ');
    return t('alarms.told.told', { time: formatTime(first.changedTs), who });
  }
  return announcedTs === null
    ? t('alarms.told.before')
    : t('alarms.told.somebody', { time: formatTime(announcedTs) });
}

/** By a snooze, which undoes nothing that has arrived. Acknowledged after that it is not told again. */
function sayWithdrawn({ deliveries, acknowledgedTs }: ListedAlarm): string {
  if (arrivedOf(deliveries).length === 0) return t('alarms.notTold.snoozed');
  const who = sayWho(deliveries, null);
  return acknowledgedTs === null ? `${who} ${t('alarms.told.again')}` : who;
}

const arrivedOf = (deliveries: readonly Delivery[]) =>
  deliveries.filter(({ state, type }) => reached.includes(state) && type !== 'closed');

/** One message: how, to whom, what became of it when, and why. */
export function sayDelivery(delivery: Delivery): string {
  const { kind, recipient, type, state, changedTs, dueTs, reason } = delivery;
  const who = unbroken(recipient);
  const what = tryText(`delivery.type.${type}`, '');
  const subject = t(`delivery.${kind}`, { who }) + (what === '' ? '' : ` (${what})`);
  const outcome = t(`delivery.${state}`, { time: formatTime(dueTs ?? changedTs) });
  const why = reason === undefined ? '' : tryText(`delivery.why.${reason}`, reason);
  return `${[`${subject} ${outcome}`, why].filter(Boolean).join(': ')}.`;
}

/** An address is shortened to a…@example.com: no new line begins after its three dots. */
const unbroken = (recipient: string) => recipient.replaceAll('…', '…\u2060');
