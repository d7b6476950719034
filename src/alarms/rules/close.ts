import type { Closing } from '../../contract/alarm.ts';
import { isSamePlace, type Place } from '../../contract/place.ts';
import { nameKey, type Alarm } from '../alarm.ts';
import { note, type DeviceDraft, type AlarmDraft } from './draft.ts';

export function close(
  device: DeviceDraft,
  draft: AlarmDraft,
  closedBy: Closing,
  closedTs: number,
): void {
  Object.assign(draft.alarm, closedAs(closedBy, closedTs));
  note(draft, 'closed');
  device.open.delete(nameKey(draft.alarm.of));
  device.closed.push(draft);
}

/** What changes of an alarm that closes. */
export function closedAs(closedBy: Closing, closedTs: number): Partial<Alarm> {
  const nothingLeft = { endsTs: null, endsAs: null, expiresTs: null, nextTs: null };
  return { ...nothingLeft, closedBy, closedTs, waitsForFresh: false };
}

/** What an alarm stands for is over: it closes, or `actions.keepMs` keeps it open for a while. */
export function end(device: DeviceDraft, draft: AlarmDraft, as: Closing, nowTs: number): void {
  const { alarm } = draft;
  if (alarm.endsTs !== null) return;
  const { keepMs = 0 } = alarm.actions;
  if (keepMs === 0) {
    close(device, draft, as, nowTs);
    return;
  }
  alarm.endsTs = nowTs + keepMs;
  alarm.endsAs = as;
  note(draft, 'ending');
}

/** When an alarm closes by itself, and as what; null: it does not. */
function dueClosing({ endsTs, endsAs, expiresTs }: Alarm): { ts: number; as: Closing } | null {
  const ends = endsTs !== null && endsAs !== null ? { ts: endsTs, as: endsAs } : null;
  if (expiresTs === null || (ends && ends.ts <= expiresTs)) return ends;
  return { ts: expiresTs, as: 'expired' };
}

/** Closes what was due before this time. */
export function closeDue(device: DeviceDraft, nowTs: number): void {
  for (const draft of device.open.values()) {
    const due = dueClosing(draft.alarm);
    if (due && due.ts <= nowTs) close(device, draft, due.as, due.ts);
  }
}

/**
 * Whether a move ends what an alarm stands for. One of a reported event ends only by a report, of a state
 * that the event does not lead to; one that moved the device with the state it led to; any other with the state
 * of its event, or the purpose where that state is global.
 */
export function endsByMove(alarm: Alarm, to: Place, isReport: boolean): boolean {
  const { of, movedTo, isReported, isGlobal } = alarm;
  if (isReported) return isReport && !isSamePlace(movedTo, to);
  if (movedTo) return !isSamePlace(movedTo, to);
  return of.puId !== to.puId || (!isGlobal && of.stId !== to.stId);
}
