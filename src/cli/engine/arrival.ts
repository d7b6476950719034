import { ErrorDownlink } from '../../contract/downlink.ts';
import type { SenseEvent } from '../../contract/event.ts';
import type { Measurement } from '../../contract/measurement.ts';
import type { SentMeasurement } from '../../contract/uplink.ts';
import type { LastSeen, Newest } from '../../engine/last-seen.ts';
import { stamp, type Stamping } from '../../ingest/queues.ts';
import { noChanges } from '../../ingest/rules/changes.ts';
import { Pages } from '../../ingest/rules/pages.ts';
import { addSilentSenses } from '../../ingest/rules/silent-senses.ts';
import { StoredAlready } from '../../ingest/rules/stored-already.ts';
import { type Clocked, TakeTime } from '../../ingest/rules/event-time.ts';

/** Told on `down/errors`: what is odd about the device's clock. */
export type Remark = { reason: string; message: string };

/**
 * Which measurements of a device are evaluated, in which order, and as of when: by the rules of the service, for a device
 * whose measurements are all stored.
 */
export class Arrival {
  readonly #queue: Stamping = { lastArrival: null };
  readonly #stored = new StoredAlready([]);
  #known: Clocked = {
    device: { deviceId: 0, uuid: '' },
    watched: new Map(),
    seen: Pages.of<Newest>([]),
    clocks: null,
    remarked: null,
  };

  /** Hands on each measurement of a message with the time at which it is taken; null: it is not evaluated. */
  receive(
    sent: readonly SentMeasurement[],
    arrivedTs: number,
    take: (measurement: Measurement, t: number | null) => void,
  ): Remark[] {
    const items = sent.map((value, index) => ({ index, value }));
    const content = stamp({ content: { kind: 'measurements', items }, arrivedTs }, this.#queue);
    if (content.kind !== 'measurements') return [];
    this.#watch(sent);
    const rows = noChanges();
    const message = { topic: 'measurements', arrivedTs, stored: this.#stored, rows };
    const times = new TakeTime(this.#known, message);
    for (const { index, value, isStamped = false } of content.items) {
      const { sId, val, ts = arrivedTs } = value;
      const measurement = { sId, val, ts };
      take(measurement, times.take(measurement, isStamped, `/${index}`));
    }
    this.#known = times.end(this.#known);
    return rows.effects.flatMap((effect) => {
      if (effect.kind !== 'down' || effect.message.topic !== 'errors') return [];
      const { reason, message: text } = ErrorDownlink.parse(effect.message.payload);
      return { reason, message: text };
    });
  }

  /** Adds the newest value of each silent sense to what an event that fired tells. */
  addSilent(event: SenseEvent): void {
    addSilentSenses(this.#known, event);
  }

  /** The newest measurement of each sense. */
  get seen(): LastSeen {
    const { watched, seen } = this.#known;
    const all = [...watched].map(([sId, number]) => [sId, seen.get(number)] as const);
    return Object.fromEntries(all.flatMap(([sId, newest]) => (newest ? [[sId, newest]] : [])));
  }

  /** A profile may come later that reads them: all are watched. */
  #watch(sent: readonly SentMeasurement[]): void {
    const watched = new Map(this.#known.watched);
    for (const { sId } of sent) if (!watched.has(sId)) watched.set(sId, watched.size);
    const { seen, watched: before } = this.#known;
    if (watched.size === before.size) return;
    const all = Array.from({ length: watched.size }, (_, number) => seen.get(number));
    this.#known = { ...this.#known, watched, seen: Pages.of(all) };
  }
}
