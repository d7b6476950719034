import type { NotNotified } from '../../contract/not-notified.ts';
import { note, type PlannedAsk, type RuleOptions, type TellingVerdict } from './draft.ts';

/** How many messages an ask made, for now and for later; both 0: why none. */
export type Told = { queued: number; planned: number; notNotified: NotNotified | null };

/** Writes what became of asks into their alarms, and into the events of the firings. `told`: in their order. */
export function settle(
  asks: readonly PlannedAsk[],
  told: readonly Told[],
  verdicts: readonly TellingVerdict[],
  at: { nowTs: number; options: RuleOptions },
): void {
  for (const [place, asked] of asks.entries()) settleAlarm(asked, answerOf(told[place]), at);
  for (const { event, because, ask, isAsking } of verdicts) {
    const answer = ask === null ? null : answerOf(told[ask]);
    event.notified = answer?.isTold === true && isAsking;
    if (event.notified) continue;
    const why = answer?.isTold === true ? 'same-episode' : (because ?? answer?.why);
    if (why) event.notNotified = why;
  }
}

function settleAlarm(
  { draft }: PlannedAsk,
  { isTold, why }: Answer,
  { nowTs, options }: { nowTs: number; options: RuleOptions },
): void {
  if (!draft) return;
  const { alarm } = draft;
  const isOpen = alarm.closedTs === null;
  alarm.waitsForFresh = false;
  if (!isTold) {
    alarm.notNotified = why;
    note(draft, 'not-told');
    if (isOpen) alarm.nextTs = nowTs + options.ringMaxAgeMs;
    return;
  }
  const { repeatMs } = alarm;
  alarm.told = 'queued';
  alarm.notNotified = null;
  alarm.announcedTs = nowTs;
  alarm.announcement += 1;
  alarm.nextTs = isOpen && repeatMs !== null ? nowTs + repeatMs : null;
  note(draft, 'told');
}

type Answer = { isTold: boolean; why: NotNotified };

function answerOf(told: Told | undefined): Answer {
  const { queued = 0, planned = 0, notNotified = null } = told ?? {};
  return { isTold: queued + planned > 0, why: notNotified ?? 'no-recipient' };
}
