import type { Alarm, Quiet } from '../alarm.ts';

type Set = Partial<Omit<Alarm, 'alarmId' | 'device' | 'of'>>;

/** Nobody is told of it again: by its timer or a repeat. Null where that changes nothing. */
export function acknowledgedAlarm(alarm: Alarm, by: string, ts: number): Set | null {
  if (alarm.closedTs !== null || alarm.acknowledgedTs !== null) return null;
  return { acknowledgedTs: ts, acknowledgedBy: by, nextTs: null, waitsForFresh: false };
}

/** An announcement and an acknowledgement are taken back: what is still true when it ends is told then. */
export function snoozed(alarm: Alarm, { untilTs }: Pick<Quiet, 'untilTs'>): Set | null {
  if (alarm.closedTs !== null) return null;
  const isAnnounced = alarm.announcedTs !== null;
  return {
    announcedTs: null,
    acknowledgedTs: null,
    acknowledgedBy: null,
    failures: 0,
    told: isAnnounced ? 'withdrawn' : alarm.told,
    notNotified: alarm.tells === 'alarm' ? 'snoozed' : null,
    nextTs: alarm.tells === 'alarm' ? untilTs : null,
  };
}

/** Its timer tells what is not announced, or has been put off until the quiet's end. */
export function unquieted(alarm: Alarm, nowTs: number, quietUntilTs: number): Set | null {
  const { closedTs, acknowledgedTs, announcedTs, nextTs, tells } = alarm;
  if (closedTs !== null || acknowledgedTs !== null || tells !== 'alarm') return null;
  const isPutOff = nextTs === quietUntilTs;
  const waits = announcedTs === null && alarm.notNotified === 'snoozed';
  return isPutOff || waits ? { nextTs: nowTs } : null;
}
