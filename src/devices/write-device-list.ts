import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ListedDevice } from './queries.ts';
import type { DeviceList } from './schema.ts';
import { deriveToken } from './token.ts';

/** Devices whose tokens are derived before others have their turn: about 3 ms of work. */
const devicesInTurn = 500;

/** The answer of Get user devices, specification section 4.3, written as it is made. */
export async function* writeDeviceList(
  keys: readonly Buffer[],
  rows: ListedDevice[],
  timestamp: DeviceList['timestamp'],
): AsyncGenerator<string> {
  yield '{"devices":[';
  for (let from = 0; from < rows.length; from += devicesInTurn) {
    const devices = rows.slice(from, from + devicesInTurn).map((row) => toListed(keys, row));
    const text = JSON.stringify(devices).slice(1, -1);
    yield from === 0 ? text : `,${text}`;
    await nextTurn();
  }
  yield `],"timestamp":${timestamp}}`;
}

function toListed(keys: readonly Buffer[], row: ListedDevice): DeviceList['devices'][number] {
  return {
    uuid: row.uuid,
    token: deriveToken(keys, row.uuid, row.token_version),
    state: { puId: row.pu_id, stId: row.st_id, ts: row.state_at },
    name: row.name,
    connected: row.connected ?? false,
    lastSeenTs: row.last_seen_at,
  };
}
