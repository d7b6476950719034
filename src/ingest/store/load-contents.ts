import { setImmediate } from 'node:timers/promises';
import { compileProfile } from '../../engine/compile.ts';
import type { Profile } from '../../engine/compile.ts';
import type { Sql } from '../../db/sql.ts';
import type { Content } from './account-cache.ts';
import type { DeviceQueue } from '../queue/device-queue.ts';
import { type DeviceRow, type DeviceSize, listContents, listSizes } from '../write.ts';
import type { ContextCache } from './context-cache.ts';

/** What profiles say, compiled, by the number of their content. */
export type Layouts = ReadonlyMap<number, Content['layout']>;

/** The queues that one transaction has no room to read; the first one has. */
export async function pickLeft(
  tx: Sql,
  queues: DeviceQueue[],
  remembered: ContextCache,
): Promise<ReadonlySet<DeviceQueue>> {
  const left = new Set<DeviceQueue>();
  if (queues.length < 2) return left;
  const byDevice = new Map(queues.map((queue) => [queue.device.deviceId, queue]));
  const counted = new Set<number>();
  let bytes = 0;
  for (const size of await listSizes(tx, [...byDevice.keys()])) {
    const queue = byDevice.get(size.device_id);
    if (!queue) continue;
    const more = size.bytes + missingBytes(size, counted, remembered);
    if (bytes > 0 && bytes + more > remembered.maxReadBytes) left.add(queue);
    else {
      bytes += more;
      for (const { id } of size.contents) counted.add(id);
    }
  }
  return left;
}

function missingBytes(size: DeviceSize, counted: Set<number>, remembered: ContextCache): number {
  const isMissing = ({ id }: { id: number }) =>
    !counted.has(id) && !remembered.findContent(size.account_id, id);
  return size.contents.filter(isMissing).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Those that the devices have: taken along at once, for while others are read they may be dropped here. */
export async function loadContents(
  tx: Sql,
  rows: DeviceRow[],
  remembered: ContextCache,
): Promise<Layouts> {
  const layouts = new Map<number, Content['layout']>();
  const missing = new Set<number>();
  for (const { account_id: accountId, current_content, pending_content } of rows) {
    for (const id of [current_content, pending_content]) {
      if (id === null) continue;
      const layout = remembered.findContent(accountId, id);
      if (layout) layouts.set(id, layout);
      else missing.add(id);
    }
  }
  if (missing.size === 0) return layouts;
  for (const { id, account_id: accountId, bytes, purposes } of await listContents(tx, [
    ...missing,
  ])) {
    const { pId: _none, ...layout } = compileProfile('', purposes);
    layouts.set(id, layout);
    remembered.addContent(accountId, id, layout, bytes);
    if (bytes > pauseBytes) await setImmediate();
  }
  return layouts;
}

/** To compile so much takes some milliseconds: others have a turn. */
const pauseBytes = 65_536;

export function profileOf(
  pId: string | null,
  contentId: number | null,
  layouts: Layouts,
): Profile | undefined {
  const layout = contentId === null ? undefined : layouts.get(contentId);
  return pId !== null && layout ? { pId, ...layout } : undefined;
}
