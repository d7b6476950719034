import type { NewNotification } from '../contract/notification.ts';
import { describeCauses, type SenseWordsBySId } from './text.ts';
import { smsText } from './words/sms-text.ts';
import { describeTime } from './words/when.ts';
import type { Words } from './words/words.ts';
import { wordsOf } from './words/words-of.ts';

/** In whose words a message is written, and of which device. */
export type Wording = {
  language: string | null;
  timeZone: string | null;
  /** The device's name, or its uuid. */
  deviceName: string;
  senses: SenseWordsBySId;
  nowMs: number;
};

/** `<device name>: <event name>`. Of an SMS it is said in lists, and where several are told of in one. */
export function titleOf(
  { name, event }: NewNotification,
  { language, deviceName }: Wording,
): string {
  return `${deviceName}: ${name || wordsOf(language).event(event.cause.engine.evId)}`;
}

/**
 * An SMS is its text; others tell what was measured, and when. A repeat says since when its alarm is open; the
 * last message of a day that it is that.
 */
export function bodyOf(notification: NewNotification, wording: Wording, isLast: boolean): string {
  const words = wordsOf(wording.language);
  const after = `${sinceOf(notification, wording, words)}${isLast ? `\n${words.lastToday}` : ''}`;
  if (notification.kind === 'sms') return smsText(wording.deviceName, notification.text, after);
  const { event } = notification;
  const causes = describeCauses(event, wording.senses, words).join('; ');
  const when = describeTime(event.ts, wording.nowMs, wording.timeZone, words);
  return `${causes} (${when})${after}`;
}

function sinceOf({ about }: NewNotification, { nowMs, timeZone }: Wording, words: Words): string {
  if (about?.type !== 'repeated') return '';
  const when = (ts: number) => describeTime(ts, nowMs, timeZone, words);
  const { sinceTs, lastHeardTs } = about;
  const heard = lastHeardTs === undefined ? '' : ` ${words.lastHeard(when(lastHeardTs))}`;
  return `\n${words.openSince(when(sinceTs))}${heard}`;
}
