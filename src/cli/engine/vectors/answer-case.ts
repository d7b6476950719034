import { Device } from '../device.ts';
import { arrivalOf, parseHappening, type Happening } from '../happening.ts';
import { isSomething, ledBy, movedOf, type Led } from '../led.ts';
import { parsePurposes } from '../read-purposes.ts';
import type { Evaluated } from '../../../engine/outcome.ts';
import type { Case } from './cases.ts';

/** What this engine answers to a case, with all members that an answer may have. */
export function answerCase({ rule, purposes, installedTs, listening, starts, steps }: Case) {
  const where = JSON.stringify(rule);
  const parsed = parsePurposes(purposes, where, '/purposes');
  const device = new Device(parsed, installedTs, { gaps: listening });
  if (starts) device.standIn(starts, installedTs);
  let nowTs = installedTs;
  const answered = steps.map((step) => {
    const happening = parseHappening(step, where);
    nowTs = arrivalOf(happening, nowTs, where);
    if (happening.kind === 'clock') device.setClockRight(nowTs);
    const ticks = ledByAll(device.ticksUntil(nowTs));
    const led = answerStep(device, happening, nowTs, 'message' in step);
    const forced = 'ticks' in led ? led.ticks : [];
    return { ...led, ticks: [...ticks, ...forced], nextDueTs: device.nextDueTs() };
  });
  return { rule, steps: answered, ends: device.place };
}

function answerStep(device: Device, happening: Happening, arrivedTs: number, isMessage: boolean) {
  switch (happening.kind) {
    case 'tick':
    case 'clock':
      return {};
    case 'install':
      device.install(happening.purposes, arrivedTs);
      return {};
    case 'enter': {
      const { to, said } = happening;
      const event = device.enter(to, said, arrivedTs);
      return { moves: event && movedOf(to, event) };
    }
    case 'message': {
      const { measured } = device.measure(happening.sent, arrivedTs);
      const evaluates = measured.flatMap(({ measurement, forced, outcome }) =>
        outcome ? [{ measurement, ticks: ledByAll(forced), ...ledBy(outcome) }] : [],
      );
      if (isMessage) return { evaluates };
      const [only] = evaluates;
      return only ?? { fires: [], ended: [], shows: [] };
    }
  }
}

const ledByAll = (ticks: readonly Evaluated[]): Led[] => ticks.map(ledBy).filter(isSomething);
