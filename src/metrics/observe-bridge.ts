import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { BridgeView } from '../../connector/bridge/status.ts';

/** A bridge of this process. */
export type ObservedBridge = { connector: string; read: () => BridgeView };

/** How the bridges of this process stand, read when somebody asks. Gives what adds one. */
export function observeBridges(registry: Registry): (bridge: ObservedBridge) => void {
  const bridges: ObservedBridge[] = [];
  const gauge = (name: string, help: string, valueOf: (view: BridgeView) => number | null) =>
    new Gauge({
      name,
      help,
      labelNames: ['connector'],
      registers: [registry],
      collect() {
        this.reset();
        for (const { connector, read } of bridges) {
          const value = valueOf(read());
          if (value !== null) this.set({ connector }, value);
        }
      },
    });
  gauge('bridge_connected', 'Whether the bridge is connected to its broker, 1 or 0.', (view) =>
    Number(view.isConnected),
  );
  gauge(
    'bridge_state_since_timestamp_seconds',
    'Since when it is connected, or is not.',
    ({ sinceTs }) => sinceTs / 1_000,
  );
  gauge(
    'bridge_lease_held',
    'Whether it is the turn of this process to be connected; absent where bridges share.',
    ({ isLeaseHeld }) => (isLeaseHeld === null ? null : Number(isLeaseHeld)),
  );
  gauge(
    'bridge_last_message_in_timestamp_seconds',
    'When the last message came from the broker.',
    ({ lastInTs }) => (lastInTs === null ? null : lastInTs / 1_000),
  );
  gauge(
    'bridge_last_message_out_timestamp_seconds',
    'When the broker took the last message for a device.',
    ({ lastOutTs }) => (lastOutTs === null ? null : lastOutTs / 1_000),
  );
  new Gauge({
    name: 'bridge_disconnected',
    help: '1 for the reason why the bridge is not connected; absent where it is.',
    labelNames: ['connector', 'reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { connector, read } of bridges) {
        const { reason } = read();
        if (reason !== null) this.set({ connector, reason }, 1);
      }
    },
  });
  new Counter({
    name: 'bridge_refused_total',
    help: 'Messages that were not taken, by reason.',
    labelNames: ['connector', 'reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { connector, read } of bridges)
        for (const [reason, count] of read().refused) this.inc({ connector, reason }, count);
    },
  });
  return (bridge) => void bridges.push(bridge);
}
