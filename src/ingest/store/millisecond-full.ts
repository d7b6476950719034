import type { Rejection } from '../../contract/rejection.ts';
import type { Item, SentMeasurement } from '../../contract/uplink.ts';
import { newUnit, type Unit } from '../rules/message.ts';
import type { Work } from '../queue/device-queue.ts';
import type { MeasurementRow } from '../rules/measurement-row.ts';

/** There is no room for these: their sense has as many other values in that millisecond as fit into it. */
export class MillisecondFull extends Error {
  readonly rows: MeasurementRow[];

  constructor(rows: MeasurementRow[]) {
    super(`${rows.length} measurements found no room in their millisecond`);
    this.rows = rows;
  }
}

/** The same batch, with those measurements turned into rejections. */
export function rejectBeyondMillisecond(batch: Work[], rows: MeasurementRow[]): Work[] {
  const full = new Set(rows.map((row) => nameOf(row.deviceId, row)));
  return batch.map(({ queue, units }) => {
    const isFull = ({ value }: Item<SentMeasurement>) => {
      const { sId, ts, val } = value;
      const place = typeof val === 'number' ? { val } : { val: val.lat, long: val.long };
      return full.has(nameOf(queue.device.deviceId, { sId, ts, ...place }));
    };
    return { queue, units: units.map((unit) => rejectSome(unit, isFull)) };
  });
}

function rejectSome(unit: Unit, isWrong: (item: Item<SentMeasurement>) => boolean): Unit {
  const { message, content, rejections } = unit;
  if (content.kind !== 'measurements' || !content.items.some(isWrong)) return unit;
  return newUnit(message, { ...content, items: content.items.filter((item) => !isWrong(item)) }, [
    ...rejections,
    ...content.items.filter(isWrong).map(toRejection),
  ]);
}

function toRejection({ index, value: { sId, ts } }: Item<SentMeasurement>): Rejection {
  return {
    reason: 'unstorable',
    message: `Sense ${sId} has 1,000 other values at ts ${ts}: no more fit into a millisecond.`,
    path: index === null ? '' : `/${index}`,
  };
}

type Named = { sId: string; ts?: number | undefined; val: number; long?: number | undefined };
const nameOf = (deviceId: number, { sId, ts, val, long }: Named) =>
  [deviceId, sId, ts, val, long].join(' ');
