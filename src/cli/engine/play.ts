import type { Measurement } from '../../contract/measurement.ts';
import type { Place } from '../../contract/place.ts';
import type { Purpose } from '../../contract/purpose.ts';
import type { Remark } from './arrival.ts';
import { Device } from './device.ts';
import { arrivalOf, type Happening } from './happening.ts';
import { isSomething, ledBy, movedOf, type Led, type Moved } from './led.ts';

/** What is told of a stream, one after the other; `line` where a line of it led there. */
export type Told =
  | ({ kind: 'tick'; arrivedTs: number } & Led)
  | ({ kind: 'measured'; line: number; arrivedTs: number; measurement: Measurement } & Led)
  | { kind: 'not-evaluated'; line: number; arrivedTs: number; measurement: Measurement }
  | ({ kind: 'remark'; line: number; arrivedTs: number } & Remark)
  | { kind: 'entered'; line: number; arrivedTs: number; moves: Moved | null }
  | { kind: 'installed'; line: number; arrivedTs: number; place: Place };

/** A device to which a stream happens, line by line. Times are those of the stream. */
export class Play {
  readonly #purposes: Purpose[];
  #device: Device | null = null;
  #nowTs: number | null;

  /** `installedTs`: when the profile becomes current; null: as the first line arrives. */
  constructor(purposes: Purpose[], installedTs: number | null) {
    this.#purposes = purposes;
    this.#nowTs = installedTs;
    if (installedTs !== null) this.#device = new Device(purposes, installedTs);
  }

  /** Null before the first line. */
  get device(): Device | null {
    return this.#device;
  }

  get nowTs(): number | null {
    return this.#nowTs;
  }

  /** What a line of the stream leads to, with the ticks that are due before it. Throws `InputError`. */
  *happen(happening: Happening, line: number, where: string): Generator<Told> {
    const arrivedTs = arrivalOf(happening, this.#nowTs, where);
    const device = (this.#device ??= new Device(this.#purposes, arrivedTs));
    if (happening.kind === 'clock') {
      device.setClockRight(arrivedTs);
      this.#nowTs = arrivedTs;
    }
    yield* this.runUntil(arrivedTs);
    if (happening.kind === 'enter') {
      const { to, said } = happening;
      const event = device.enter(to, said, arrivedTs);
      yield { kind: 'entered', line, arrivedTs, moves: event && movedOf(to, event) };
    }
    if (happening.kind === 'install') {
      device.install(happening.purposes, arrivedTs);
      yield { kind: 'installed', line, arrivedTs, place: device.place };
    }
    if (happening.kind !== 'message') return;
    const { measured, remarks } = device.measure(happening.sent, arrivedTs);
    for (const { measurement, forced, outcome } of measured) {
      yield* forced.map(ledBy).filter(isSomething).map(tickAt(arrivedTs));
      const led = outcome && ledBy(outcome);
      if (!led) yield { kind: 'not-evaluated', line, arrivedTs, measurement };
      else if (isSomething(led)) yield { kind: 'measured', line, arrivedTs, measurement, ...led };
    }
    for (const remark of remarks) yield { kind: 'remark', line, arrivedTs, ...remark };
  }

  /** Lets time go on: what is due by then. */
  *runUntil(untilTs: number): Generator<Told> {
    this.#nowTs = Math.max(untilTs, this.#nowTs ?? untilTs);
    for (const tick of this.#device?.ticksUntil(untilTs) ?? []) {
      const led = ledBy(tick);
      if (isSomething(led)) yield tickAt(tick.arrivedTs)(led);
    }
  }
}

const tickAt = (arrivedTs: number) => (led: Led) => ({ kind: 'tick' as const, arrivedTs, ...led });
