import type { Uplink, UplinkContent } from '../../contract/uplink.ts';
import type { DeviceQueue } from './device-queue.ts';

/** Characters; no name of a sense is longer. */
const longestName = 256;

/**
 * Gives measurements without a time that of their arrival. Two of one sense in the same millisecond
 * would be taken for one delivered twice, so the later one is moved on by a millisecond.
 */
export function stampArrivals({ content, arrivedTs }: Uplink, queue: DeviceQueue): UplinkContent {
  if (content.kind !== 'measurements') return content;
  if (content.items.every(({ value }) => value.ts !== undefined)) return content;
  queue.lastArrival ??= new Map();
  const last = queue.lastArrival;
  const items = content.items.map(({ index, value }) => {
    if (value.ts !== undefined) return { index, value };
    const ts = Math.max(arrivedTs, (last.get(value.sId) ?? 0) + 1);
    // Senses are judged later: a stranger's names must not pile up here, nor long ones.
    const isTooMuch = last.size >= 1_024 || value.sId.length > longestName;
    if (!isTooMuch || last.has(value.sId)) last.set(value.sId, ts);
    return { index, value: { ...value, ts } };
  });
  return { ...content, items };
}
