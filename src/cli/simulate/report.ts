import type { Reading } from './compare.ts';
import { count, type Tally } from './tally.ts';
import type { Verification } from './verify.ts';

const maxExamples = 3;

/** Says in plain words how the run went; `agrees` is false when anything differs. */
export function report(
  verification: Verification,
  tally: Tally,
): { agrees: boolean; text: string } {
  const { comparison, recordedEvents } = verification;
  const { acknowledged, found, lost, doubled, foreign, unacknowledged } = comparison;
  const nothing = acknowledged === 0;
  const events = tally.events > recordedEvents;
  const agrees = !nothing && !events && lost.length + doubled.length + foreign.length === 0;
  const lines = [
    nothing
      ? 'Nothing was acknowledged, so there is nothing to compare.'
      : `${count(acknowledged)} measurements were acknowledged, ${count(found)} of them were read back.`,
    ...examples('acknowledged and not stored', lost),
    ...examples('stored more than once', doubled),
    ...examples('stored, but never sent like this', foreign),
    `${count(recordedEvents)} events are recorded, devices were told of ${count(tally.events)}.`,
    ...(events ? ['DIFFERENCE: devices were told of events that are not recorded.'] : []),
    ...warnings(tally, unacknowledged),
    ...(agrees ? ['Everything that was acknowledged is there, once, as it was sent.'] : []),
  ];
  return { agrees, text: lines.join('\n') };
}

function examples(what: string, readings: Reading[]): string[] {
  if (readings.length === 0) return [];
  const some = readings.slice(0, maxExamples).map(({ sId, val, ts }) => `${sId} = ${val} at ${ts}`);
  const more = readings.length > maxExamples ? ', …' : '';
  return [`DIFFERENCE: ${count(readings.length)} ${what}: ${some.join(', ')}${more}`];
}

/** What does not speak against the service, but explains the figures. */
function warnings(tally: Tally, unacknowledged: number): string[] {
  const open = tally.published - tally.acknowledged;
  return [
    open > 0 && `${count(open)} messages were never acknowledged.`,
    unacknowledged > 0 &&
      `${count(unacknowledged)} measurements are stored though not acknowledged.`,
    tally.skipped > 0 && `${count(tally.skipped)} readings were skipped: too many waited already.`,
    tally.reconnects > 0 &&
      `Connections were lost; devices tried ${count(tally.reconnects)} times to connect again.`,
    tally.refused > 0 && `The service refused ${count(tally.refused)} items: ${tally.firstRefusal}`,
  ].filter((line) => line !== false);
}
