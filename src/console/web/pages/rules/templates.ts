import type { Sense } from '../../api/types.ts';
import type { Members, Rule } from './document.ts';
import { text } from './texts.ts';

export const templateNames = [
  'freezer',
  'silent',
  'door',
  'tank',
  'area',
  'machine',
  'empty',
] as const;
export type TemplateName = (typeof templateNames)[number];

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** A sensor that fits, by its unit or name. Without one, the first of all: somebody chooses another. */
function find(senses: readonly Sense[], fits: RegExp): string {
  const found = senses.find(({ name = '', unit = '' }) => fits.test(`${unit}|${name}`));
  return (found ?? senses[0])?.sId ?? '';
}

const tells = { alarm: true, cloud: { sendPush: true } };
const event = (evId: number, name: string, cause: Members, actions: Members) => ({
  evId,
  name,
  eventLog: true,
  causes: [{ orderId: 1, ...cause } as Members],
  actions,
});
const state = (stId: number, name: string, ...events: ReturnType<typeof event>[]) => ({
  stId,
  name,
  events,
});

/** A rule to begin with, for the sensors of a device. `near`: where the area of a geofence is. */
export function ruleOf(
  name: TemplateName,
  puId: number,
  senses: readonly Sense[],
  near = { lat: 0, long: 0 },
): Rule {
  const frame = { puId, name: text(`template.${name}`), initStId: 1 };
  const watched = text('template.watched');
  switch (name) {
    case 'freezer': {
      const cause = {
        sId: find(senses, /°|temp/i),
        threshold: { forMs: 10 * minuteMs },
        thresholds: { isGt: -15 },
      };
      const actions = { ...tells, repeatMs: hourMs };
      return {
        ...frame,
        states: [state(1, watched, event(1, text('template.tooWarm'), cause, actions))],
      };
    }
    case 'silent': {
      const sId = find(senses, /./);
      const silent = { sId, threshold: { noneForMs: 30 * minuteMs } };
      return {
        ...frame,
        states: [
          state(
            1,
            text('template.heard'),
            event(1, text('template.silentEvent'), silent, { ...tells, engine: { gotoStId: 2 } }),
          ),
          state(
            2,
            text('template.silentState'),
            event(
              1,
              text('template.heardAgain'),
              { sId, thresholds: { isAny: true } },
              { cloud: { sendPush: true }, engine: { gotoStId: 1 } },
            ),
          ),
        ],
      };
    }
    case 'door': {
      const cause = {
        sId: find(senses, /door|tür|open|offen|contact|kontakt/i),
        threshold: { forMs: 5 * minuteMs },
        thresholds: { isOneOf: [1] },
      };
      return {
        ...frame,
        states: [state(1, watched, event(1, text('template.doorOpen'), cause, tells))],
      };
    }
    case 'tank': {
      const sId = find(senses, /%|level|tank|pegel|stand|liter/i);
      const leak = {
        sId,
        threshold: { over: { ms: hourMs, stat: 'delta' } },
        thresholds: { isLt: -5 },
      };
      const low = { sId, threshold: { count: 3 }, thresholds: { isLt: 20 } };
      return {
        ...frame,
        states: [
          state(
            1,
            watched,
            event(1, text('template.leaking'), leak, {
              ...tells,
              severity: 'critical',
              keepMs: hourMs,
            }),
            event(2, text('template.low'), low, tells),
          ),
        ],
      };
    }
    case 'area': {
      const sId = find(senses, /position|place|ort|gps/i);
      const step = 0.002;
      const isInsideGeo = [
        [step, -step],
        [step, step],
        [-step, step],
        [-step, -step],
      ].map(([north = 0, east = 0]) => ({
        lat: round(near.lat + north),
        long: round(near.long + east),
      }));
      const left = { sId, threshold: { count: 3, negate: true }, thresholds: { isInsideGeo } };
      const back = { sId, threshold: { count: 3 }, thresholds: { isInsideGeo } };
      return {
        ...frame,
        states: [
          state(
            1,
            text('template.inside'),
            event(1, text('template.left'), left, { ...tells, engine: { gotoStId: 2 } }),
          ),
          state(
            2,
            text('template.away'),
            event(1, text('template.back'), back, { engine: { gotoStId: 1 } }),
          ),
        ],
      };
    }
    case 'machine': {
      const sId = find(senses, /W\b|power|leistung/i);
      const on = { sId, threshold: { forMs: minuteMs }, thresholds: { isGt: 20 } };
      const off = { sId, threshold: { forMs: 3 * minuteMs }, thresholds: { isLt: 5 } };
      return {
        ...frame,
        states: [
          state(
            1,
            text('template.idle'),
            event(1, text('template.started'), on, { engine: { gotoStId: 2 } }),
          ),
          state(
            2,
            text('template.running'),
            event(1, text('template.finished'), off, {
              alarm: false,
              cloud: { sendPush: true },
              engine: { gotoStId: 1 },
            }),
          ),
        ],
      };
    }
    case 'empty':
      return { ...frame, states: [state(1, watched)] };
  }
}

const round = (degrees: number) => Math.round(degrees * 1e6) / 1e6;
