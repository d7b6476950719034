import { findPublisher, upPrefix } from '../../src/contract/topic.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { pause } from '../../src/lib/wait.ts';
import { isUnavailableError } from '../failure.ts';
import type { Log, Observer } from '../options.ts';
import { parseUplink } from '../device/parse-uplink.ts';
import { createUnknownMemberTurns } from '../device/unknown-members.ts';
import { Carried } from './bridge-uplink.ts';
import type { BridgePorts } from './ports.ts';
import type { BridgeStatus } from './status.ts';

export type ArrivalsDeps = {
  ports: Pick<BridgePorts, 'identify' | 'ingest' | 'presence' | 'clock' | 'holds'>;
  rejectionsPerMessage: number;
  observe: Pick<Observer, 'message'>;
  log: Log;
  now: () => number;
  status: Pick<BridgeStatus, 'refused'>;
  onHeard: (device: DeviceIdentity) => void;
  stopping: AbortSignal;
};

type Arrival = {
  topic: string;
  payload: Buffer;
  arrivedTs: number;
  onStored: () => void;
  onFailed: (error: unknown) => void;
};

const retryMs = 500;
/** Between two lines about devices that are not served. */
const tellEveryMs = 10_000;

/** The way of a message from the broker into the database, one device's in the order they came. */
export function createArrivals(deps: ArrivalsDeps) {
  const { ports, rejectionsPerMessage: max, observe, log, now, status, onHeard, stopping } = deps;
  /** Messages of devices that are being looked up. */
  const waiting = new Map<string, Arrival[]>();
  const takeTurn = createUnknownMemberTurns(now);
  let toldMs = -Infinity;

  async function lookUp(uuid: string): Promise<DeviceIdentity | null> {
    for (;;) {
      try {
        return await ports.identify(uuid);
      } catch (error) {
        if (!isUnavailableError(error) || stopping.aborted) throw error;
        await pause(retryMs, stopping);
      }
    }
  }

  async function carryAll(uuid: string, arrivals: Arrival[]): Promise<void> {
    const found = await lookUp(uuid).then(
      (device) => ({ device }),
      (error: unknown) => ({ error }),
    );
    waiting.delete(uuid);
    for (const arrival of arrivals) {
      if ('error' in found) arrival.onFailed(found.error);
      else if (found.device) carry(found.device, arrival);
      else {
        status.refused('unknown-device');
        arrival.onStored();
      }
    }
    if ('device' in found && !found.device) tellOfUnknown(uuid);
  }

  /** Not of each message: a whole fleet may go on publishing. The count is in the metrics. */
  function tellOfUnknown(uuid: string): void {
    const nowMs = now();
    if (nowMs - toldMs < tellEveryMs) return;
    toldMs = nowMs;
    log.info(
      { event: 'bridge.foreign-device', device: uuid },
      'A device that does not exist, or whose account is disabled, published; the broker let it in.',
    );
  }

  function carry(device: DeviceIdentity, arrival: Arrival): void {
    const { topic, payload, arrivedTs, onStored, onFailed } = arrival;
    const prefix = upPrefix(device.uuid);
    const mayTell = () => takeTurn(device.uuid);
    const uplink = parseUplink(topic, prefix, payload, arrivedTs, max, mayTell);
    // All devices share the broker's connection, on which acknowledgements keep their order [MQTT-4.6.0-2]:
    // if one account had to wait, all would.
    if ((ports.holds?.waitMs(device.accountId) ?? 0) > 0) {
      uplink.leavesEventsOut = true;
      ports.holds?.waits(device, topic);
    }
    observe.message(uplink.content.kind);
    onHeard(device);
    ports.presence(device, 'seen');
    ports.ingest(device, uplink, new Carried(stopping, onStored, onFailed));
  }

  return {
    /** One of the callbacks is called in the end. */
    accept(
      topic: string,
      payload: Buffer,
      onStored: () => void,
      onFailed: (error: unknown) => void,
    ): void {
      const uuid = findPublisher(topic);
      if (uuid === null) {
        status.refused('no-device-topic');
        return onStored();
      }
      const arrival = { topic, payload, arrivedTs: ports.clock(), onStored, onFailed };
      const before = waiting.get(uuid);
      if (before) return void before.push(arrival);
      const arrivals = [arrival];
      waiting.set(uuid, arrivals);
      void carryAll(uuid, arrivals);
    },
  };
}
