import type { ConnectorPorts, LoginRefusal } from '../../connector/ports.ts';
import { createLocalBus } from '../../src/bus/bus.ts';
import type {
  Delivery,
  DeviceIdentity,
  Downlink,
  DownTopic,
  Outcome,
  Uplink,
} from '../../src/contract/uplink.ts';
import { DomainError } from '../../src/errors.ts';

type Stored = { device: DeviceIdentity; uplink: Uplink };
/** What a database would answer that stores everything readable. */
function outcomeOf({ content, rejections }: Uplink): Outcome {
  const isEmpty = 'items' in content ? content.items.length === 0 : content.kind === 'none';
  return { stored: isEmpty ? 0 : 1, repeated: 0, rejected: rejections };
}

type Held = Stored & { delivery: Delivery; commit(): void; fail(error: unknown): void };

/** Stands in for the database. The test can hold its commits back. */
export function createStore() {
  const tokens = new Map<string, { token: string; identity: DeviceIdentity }>();
  const errors: unknown[] = [];
  const onDisabled = new Set<(accountId: number) => void>();
  const store = {
    bus: createLocalBus({ onListenerError: (error) => void errors.push(error) }),
    /** What listeners of the bus threw. */
    errors,
    /** Committed messages, in the order of their commits. */
    stored: [] as Stored[],
    /** Messages that wait while `isHolding`. */
    held: [] as Held[],
    isHolding: false,
    isAway: false,
    /** How many waiting messages were withdrawn. */
    withdrawals: 0,
    subscribedTo: [] as DownTopic[][],
    delivered: [] as Downlink[],
    presence: [] as string[],
    /** Logins that the connector itself refused. */
    refused: [] as { uuid: string; reason: LoginRefusal; address?: string | undefined }[],
    checks: 0,
    onSubscribed: (_topics: DownTopic[]): Downlink[] => [],
    onDue: (_topic: DownTopic): Downlink[] => [],
    beforeAuthenticated: async () => {},

    /** Whether messages of other accounts wait. */
    areOthersWaiting: false,
    /** How many measurements a second an account may send while they do. */
    accountRate: 20_000,

    addDevice(
      number: number,
      accountId = 1,
    ): { uuid: string; token: string; identity: DeviceIdentity } {
      const uuid = `00000000-0000-4000-8abc-${String(number).padStart(12, '0')}`;
      const token = `token-of-${number}-`.padEnd(40, 'x');
      const identity = { deviceId: number, uuid, accountId };
      tokens.set(uuid, { token, identity });
      return { uuid, token, identity };
    },
    forgetDevice: (uuid: string) => tokens.delete(uuid),
    removeDevice(uuid: string): void {
      const deviceId = tokens.get(uuid)?.identity.deviceId ?? 0;
      store.forgetDevice(uuid);
      store.bus.publish('access', { deviceId, uuid });
    },
    /** The operator disables the account, and the connector is notified. */
    disableAccount(accountId: number): void {
      for (const [uuid, { identity }] of tokens)
        if (identity.accountId === accountId) tokens.delete(uuid);
      for (const listener of onDisabled) listener(accountId);
    },
    release(): void {
      store.isHolding = false;
      for (const { commit } of store.held.splice(0)) commit();
    },
  };

  const find = (username: string, password: string) => {
    if (store.isAway) throw new DomainError('unavailable', 'The store is away.');
    const known = tokens.get(username.toLowerCase());
    return known?.token === password ? known.identity : null;
  };

  const ports: ConnectorPorts = {
    bus: store.bus,
    onAccountDisabled(listener) {
      onDisabled.add(listener);
      return () => onDisabled.delete(listener);
    },
    clock: () => Date.now(),
    async authenticateDevice({ username, password }) {
      store.checks += 1;
      const identity = find(username, password);
      await store.beforeAuthenticated();
      return identity;
    },
    loginRefused: (login) => void store.refused.push(login),
    othersWait: () => store.areOthersWaiting,
    measurementsPerSecond: () => store.accountRate,
    isStillAllowed: async (_device, { username, password }) => find(username, password) !== null,
    ingest(device, uplink, delivery) {
      const commit = () => {
        store.stored.push({ device, uplink });
        queueMicrotask(() => {
          delivery.settled?.(outcomeOf(uplink));
          delivery.stored();
        });
      };
      if (!store.isHolding) return commit();
      store.held.push({
        device,
        uplink,
        delivery,
        commit,
        fail: (error) => delivery.failed(error),
      });
    },
    withdraw({ deviceId }) {
      const isGone = ({ device, delivery }: Held) =>
        device.deviceId === deviceId && delivery.isWithdrawn;
      const gone = store.held.filter(isGone);
      store.held = store.held.filter((held) => !isGone(held));
      for (const { delivery } of gone) delivery.failed(new DomainError('unavailable', 'withdrawn'));
      store.withdrawals += gone.length;
    },
    async subscribed(_device, topics) {
      store.subscribedTo.push(topics);
      if (store.isAway) throw new DomainError('unavailable', 'The store is away.');
      return store.onSubscribed(topics);
    },
    async due(_device, topic) {
      if (store.isAway) throw new DomainError('unavailable', 'The store is away.');
      return store.onDue(topic);
    },
    async delivered(_device, message) {
      store.delivered.push(message);
    },
    presence: ({ uuid }, change) => {
      if (change !== 'seen') store.presence.push(`${change} ${Number(uuid.slice(-12))}`);
    },
  };
  return { store, ports };
}
