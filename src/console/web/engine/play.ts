import './no-eval.ts';
import { Purpose } from '../../../contract/purpose.ts';
import { compileProfile } from '../../../engine/compile.ts';
import { Measurements } from '../../../play/measurements.ts';
import { Player } from '../../../play/player.ts';

/** What a rule would have done: alarms, each from when it held (ms) until it was over, or until the end. */
export type Played = {
  alarms: { start: number; end: number }[];
};

/** Values of a sensor, oldest first. */
export type Values = { sId: string; ts: readonly number[]; val: readonly unknown[] };

/** What an operator sets instead changes nothing here: no value comes late, and no device reports its own events. */
const rules = { ringMaxAgeMs: 900_000, reportedForMs: 3_600_000 };

/**
 * Plays a rule on values as if each had arrived when it was measured, with the engine of the service. Null if the
 * service would refuse the rule.
 */
export function playRule(
  rule: unknown,
  series: readonly Values[],
  { start, end }: { start: number; end: number },
): Played | null {
  const read = Purpose.safeParse(rule);
  if (!read.success) return null;
  const device = { deviceId: 1, uuid: '', accountId: 1 };
  const player = new Player({ device, limits: rules, rules });
  player.begin(compileProfile('', [read.data]), start);
  const measured = columnsOf(series);
  player.measure(measured, 0, measured.count);
  player.end(end);
  const alarms = player.alarms.map((alarm) => {
    const { sinceTs, beganTs, overTs, closedTs } = alarm;
    return { start: beganTs ?? sinceTs, end: overTs ?? closedTs ?? end };
  });
  return { alarms };
}

/** In the order of time. */
function columnsOf(series: readonly Values[]): Measurements {
  const measured = new Measurements();
  measured.clear(series.map(({ sId }) => sId));
  for (const [sense, { ts, val }] of series.entries())
    for (const [place, at] of ts.entries()) {
      const value = val[place];
      const { lat = Number.NaN, long = Number.NaN } = (
        typeof value === 'number' ? { lat: value } : (value ?? {})
      ) as { lat?: number; long?: number };
      if (!Number.isNaN(lat)) measured.add(sense, at * 1_000, lat, long, at, 0);
    }
  measured.sort();
  return measured;
}
