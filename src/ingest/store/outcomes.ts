import type { NewEvent } from '../../contract/event.ts';
import type { Outcome } from '../../contract/uplink.ts';
import { addRejection } from '../rules/outcome.ts';
import type { Changes } from '../rules/changes.ts';
import type { Written } from './write.ts';

/** Adds what was committed of messages whose senders ask to what is known of them. */
export function noteOutcomes(
  { outcomes, events }: Pick<Changes, 'outcomes' | 'events'>,
  { added, recorded }: Pick<Written, 'added' | 'recorded'>,
): void {
  let hasEvents = false;
  for (const planned of outcomes.values()) if (planned.events.length > 0) hasEvents = true;
  const kept = new Set(hasEvents ? events : []);
  const fresh = new Set(hasEvents ? recorded : []);
  for (const [{ outcome }, planned] of outcomes) {
    if (!outcome) continue;
    const { measurements, rejected, stored, repeated } = planned;
    outcome.stored += stored;
    outcome.repeated += repeated;
    let isNew = measurements.length;
    if (added) for (const row of measurements) if (!added.has(row)) isNew -= 1;
    outcome.stored += isNew;
    outcome.repeated += measurements.length - isNew;
    for (const one of rejected) addRejection(outcome.rejected, one, planned.maxRejections);
    if (planned.events.length > 0) noteEvents(outcome, planned.events, kept, fresh);
  }
}

/** `kept`: those that the quota let through. `fresh`: those that were not recorded before. */
function noteEvents(
  outcome: Outcome,
  reported: NewEvent[],
  kept: ReadonlySet<NewEvent>,
  fresh: ReadonlySet<NewEvent>,
): void {
  let beyond = 0;
  for (const event of reported) {
    if (fresh.has(event)) outcome.stored += 1;
    else if (kept.has(event)) outcome.repeated += 1;
    else beyond += 1;
  }
  if (beyond === 0) return;
  const message = `${beyond} events are beyond the account's quota of events: they are not recorded.`;
  outcome.rejected.push({ reason: 'events-not-recorded', message, path: '', more: beyond });
}
