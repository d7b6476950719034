import { z } from 'zod';
import type { Place } from '../../contract/place.ts';
import type { Purpose } from '../../contract/purpose.ts';
import { maxItems, SentMeasurement, SentTs, StateReport } from '../../contract/uplink.ts';
import { InputError, parseWith } from './input-error.ts';
import { parsePurposes } from './read-purposes.ts';

/** What a report of a state says beside the place. */
export type Said = { evId?: number | undefined; ts?: number | undefined };

/** One thing that happens to a device; `arrivedTs` absent: see `arrivalOf`. `install` says where it was written. */
export type Happening = { arrivedTs?: number | undefined } & (
  | { kind: 'message'; sent: SentMeasurement[] }
  | { kind: 'tick'; arrivedTs: number }
  | { kind: 'clock'; arrivedTs: number }
  | { kind: 'enter'; to: Place; said: Said }
  | { kind: 'install'; purposes: Purpose[] }
);

const Arriving = z.object({ arrivedTs: SentTs.optional() });
const Several = z.array(SentMeasurement).min(1).max(maxItems);

/** Reads a line of a stream, or a step of a vector. Throws `InputError`; `where` names the place. */
export function parseHappening(value: unknown, where: string): Happening {
  if (Array.isArray(value)) return message(parseWith(Several, value, where));
  const { arrivedTs } = parseWith(Arriving, value, where);
  const step = value as Record<string, unknown>;
  if ('sId' in step) return message([parseWith(SentMeasurement, step, where)], arrivedTs);
  if ('measurement' in step) {
    const sent = parseWith(SentMeasurement, step['measurement'], where, '/measurement');
    return message([sent], arrivedTs);
  }
  if ('message' in step) {
    return message(parseWith(Several, step['message'], where, '/message'), arrivedTs);
  }
  if ('tick' in step) {
    const { at } = parseWith(z.object({ at: SentTs }), step['tick'], where, '/tick');
    return { kind: 'tick', arrivedTs: at };
  }
  if ('clock' in step) {
    const { at } = parseWith(z.object({ at: SentTs }), step['clock'], where, '/clock');
    return { kind: 'clock', arrivedTs: at };
  }
  if ('enter' in step) {
    const { puId, stId, ...said } = parseWith(StateReport, step['enter'], where, '/enter');
    return { kind: 'enter', to: { puId, stId }, said, arrivedTs };
  }
  if ('install' in step) {
    return {
      kind: 'install',
      purposes: parsePurposes(step['install'], where, '/install'),
      arrivedTs,
    };
  }
  throw new InputError(
    `${where}: expected a measurement { sId, val, ts }, an array of them, or one of measurement, message, tick, clock, enter, install.`,
  );
}

const message = (sent: SentMeasurement[], arrivedTs?: number): Happening => ({
  kind: 'message',
  sent,
  arrivedTs,
});

/** When it arrives: without `arrivedTs` at the newest time it has, so that nothing is ahead, and never before what came before, unless the clock is set right. */
export function arrivalOf(happening: Happening, lastTs: number | null, where: string): number {
  const { arrivedTs, kind } = happening;
  if (arrivedTs !== undefined) {
    if (lastTs === null || arrivedTs >= lastTs || kind === 'clock') return arrivedTs;
    throw new InputError(
      `${where}: it happens at ${arrivedTs}, before the line before it, at ${lastTs}.`,
    );
  }
  const times = happening.kind === 'message' ? happening.sent.map(({ ts }) => ts) : [];
  const known = [...times, lastTs].filter((ts) => typeof ts === 'number');
  if (known.length > 0) return Math.max(...known);
  throw new InputError(`${where}: the first line has to say when: ts, or arrivedTs.`);
}
