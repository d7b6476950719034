import type { EventView } from '../../../api/types.ts';
import type { Span } from './span.ts';

/** Events that are one mark, newest first. `ts`: where it stands. */
export type Cluster = { ts: number; events: EventView[] };

/** Puts events together that are closer than a part of the span. They come newest first. */
export function clusters(
  events: readonly EventView[],
  { start, end }: Span,
  closest: number,
): Cluster[] {
  const leastMs = (end - start) * closest;
  const found: Cluster[] = [];
  for (const event of events) {
    const { timestamp } = event;
    if (timestamp < start || timestamp > end) continue;
    const last = found.at(-1);
    if (last && last.ts - timestamp < leastMs) last.events.push(event);
    else found.push({ ts: timestamp, events: [event] });
  }
  return found;
}
