import type { Item, SentMeasurement, Uplink, UplinkContent } from '../../contract/uplink.ts';
import type { DeviceQueue } from './device-queue.ts';

type Sent = Item<SentMeasurement>;
type Read = Pick<Uplink, 'content' | 'arrivedTs'>;
/** What it keeps of a device: the last time that a value of each sense was given. */
export type Stamping = Pick<DeviceQueue, 'lastArrival'>;

/** Characters; no name of a sense is longer. */
const longestName = 256;

/**
 * A message as it is queued: its measurements in the order of their times, those of one time as they were
 * sent. Those without a time have that of their arrival.
 */
export function stamp({ content, arrivedTs }: Read, queue: Stamping): UplinkContent {
  if (content.kind !== 'measurements') return content;
  const items = stampArrivals(content.items, arrivedTs, queue);
  const inOrder = isInOrder(items)
    ? items
    : items.toSorted((one, other) => tsOf(one) - tsOf(other));
  return inOrder === content.items ? content : { ...content, items: inOrder };
}

/**
 * Two values of one sense in the same millisecond would be taken for one delivered twice, so the later one is
 * moved on by a millisecond.
 */
function stampArrivals(items: Sent[], arrivedTs: number, queue: Stamping): Sent[] {
  if (items.every(({ value }) => value.ts !== undefined)) return items;
  queue.lastArrival ??= new Map();
  const last = queue.lastArrival;
  return items.map((item) => {
    const { index, value } = item;
    if (value.ts !== undefined) return item;
    const ts = Math.max(arrivedTs, (last.get(value.sId) ?? 0) + 1);
    // Senses are checked later: unknown names must not pile up here, nor long ones.
    const isTooMuch = last.size >= 1_024 || value.sId.length > longestName;
    if (!isTooMuch || last.has(value.sId)) last.set(value.sId, ts);
    return { index, value: { ...value, ts }, isStamped: true };
  });
}

const tsOf = ({ value }: Sent): number => value.ts ?? 0;

function isInOrder(items: Sent[]): boolean {
  for (let at = 1; at < items.length; at += 1)
    if (tsOf(items[at] as Sent) < tsOf(items[at - 1] as Sent)) return false;
  return true;
}
