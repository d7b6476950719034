import { nextTurn } from '../lib/in-turns.ts';
import type { ListedDevice } from './list-devices.ts';
import type { DeviceList } from './schema.ts';
import { deriveToken } from './token.ts';

/** Devices whose tokens are derived before others have their turn: about 3 ms of work. */
export const devicesInTurn = 500;

/**
 * The answer of Get user devices, specification section 4.3, written as it is made. `keys`: what tokens are
 * derived from; null: they are left empty.
 */
export async function* writeDeviceList(
  keys: readonly Buffer[] | null,
  pages: AsyncIterable<ListedDevice[]>,
  timestamp: DeviceList['timestamp'],
): AsyncGenerator<string> {
  yield '{"devices":[';
  let separator = '';
  for await (const rows of pages) {
    await nextTurn();
    for (let from = 0; from < rows.length; from += devicesInTurn) {
      const devices = rows.slice(from, from + devicesInTurn).map((row) => toListed(keys, row));
      yield separator + JSON.stringify(devices).slice(1, -1);
      separator = ',';
      await nextTurn();
    }
  }
  yield `],"timestamp":${timestamp}}`;
}

/** A device of a list. */
export function toListed(
  keys: readonly Buffer[] | null,
  row: ListedDevice,
): DeviceList['devices'][number] {
  return {
    uuid: row.uuid,
    token: keys ? deriveToken(keys, row.uuid, row.token_version) : '',
    state: { puId: row.pu_id, stId: row.st_id, ts: row.state_at },
    name: row.name,
    labels: row.labels,
    connected: row.connected ?? false,
    lastSeenTs: row.last_seen_at,
  };
}
