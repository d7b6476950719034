import type { Profile } from '../../engine/compile.ts';
import { describeCauses } from '../../notifications/text.ts';
import { words } from '../../notifications/words/words-of.ts';
import type { Fired, Led, Moved } from './led.ts';
import { eventText, measuredText, placeText, timeText } from './names.ts';
import type { Told } from './play.ts';

/** What is told, for people: one line or more. Times are in UTC. */
export function writeText(told: Told, profile: Profile): string {
  const at = timeText(told.arrivedTs);
  const atLine = 'line' in told ? `line ${told.line}` : 'tick';
  const lines = linesOf(told, profile);
  return lines.map((line, index) => (index === 0 ? `${at}  ${atLine}: ${line}` : line)).join('\n');
}

function linesOf(told: Told, profile: Profile): string[] {
  switch (told.kind) {
    case 'tick':
    case 'measured':
      return ledLines(told, profile);
    case 'not-evaluated':
      return [
        `${measuredText(told.measurement)} is not evaluated: it is late, or was there before`,
      ];
    case 'remark':
      return [`the device is told ${told.reason}: ${told.message}`];
    case 'installed':
      return [`another profile: the device enters ${placeText(told.place, profile)}`];
    case 'entered':
      return [told.moves ? moveText(told.moves, profile) : 'the device is there already'];
  }
}

const further = '\n    ';

function ledLines({ fires, ended, shows, moves }: Led, profile: Profile): string[] {
  const lines = [
    ...ended.map((name) => `${eventText(name, profile)}: its episode is over`),
    ...fires.map((fired) => firedText(fired, profile)),
    ...shows.map((text) => `shows ${JSON.stringify(text)}`),
    ...(moves ? [moveText(moves, profile)] : []),
  ];
  return [lines.join(further)];
}

function firedText(fired: Fired, profile: Profile): string {
  const { puId, stId, evId, ts, senses, why, record } = fired;
  const engine = { pId: '', puId, stId, evId, ts };
  const because = describeCauses(
    { type: 'sense', ts, cause: { engine, senses }, why },
    {},
    words.en,
  );
  const effects = [record ? 'recorded' : '', toldText(fired)].filter((text) => text !== '');
  const what = `${eventText(fired, profile)} fires${effects.length > 0 ? `: ${effects.join(', ')}` : ''}`;
  return [what, ...because.map((cause) => `  because ${cause}`)].join(further);
}

function toldText({ tells, first, ring }: Fired): string {
  if (tells === 'nobody') return '';
  if (tells === 'notice') return ring ? 'people are told' : 'nobody is told: it does not move';
  if (!first) return 'same episode, nobody is told again';
  return tells === 'alarm' ? 'opens an alarm, people are told' : 'opens an alarm, nobody is told';
}

function moveText({ event, ...to }: Moved, profile: Profile): string {
  if (!event) return `enters ${placeText(to, profile)} again`;
  return `moves to ${placeText(to, profile)} (${event.event} from ${event.oldValue})`;
}
