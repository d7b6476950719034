import { AsyncLocalStorage } from 'node:async_hooks';
import type { Downlink, DueTopic } from '../contract/uplink.ts';

/** `sId`, `ts`, `val`; for a position `sId`, `ts`, `lat`, `long`. */
export type LiveValue = [string, number, number] | [string, number, number, number];
/** A device as it was last written. `connectorId`: where it is connected or was last heard. `seenTs`: ms. */
export type PresentDevice = {
  deviceId: number;
  uuid: string;
  connected: boolean;
  connectorId: number;
  seenTs: number;
};
/** Devices of an account that connected or disconnected; null: too many to list. */
export type PresenceNotice = { accountId: number; devices: PresentDevice[] | null };

export type LiveDevice = { deviceId: number; uuid: string; values: LiveValue[] };

/** Messages between processes. None is the only copy of anything: what matters is in the database. */
export type BusMessages = {
  /**
   * Something of this device that `ingest` or a connector may have cached has changed. `push` names what to send to it.
   */
  device: { deviceId: number; uuid: string; push?: 'profile' | 'configuration' };
  /** Something may be due to the device, and nothing that is cached has changed. */
  due: { uuid: string; topic: DueTopic };
  /** A command of the account changed. */
  command: { accountId: number; commandId: string };
  /** A message for the device's live connections, wherever they are. */
  down: { uuid: string; message: Downlink };
  /**
   * The device's credentials changed: cached versions are stale, and connections that they no longer allow are closed.
   */
  access: { deviceId: number; uuid: string };
  /** A device connected somewhere with this session: older connections of the same session are closed. */
  session: { uuid: string; clientId: string; connection: string };
  /** An account was removed: its devices' connections and its streams end. */
  removed: { accountId: number };
  /** Sessions of an account ended: all of them, or the named one. */
  revoked: { accountId: number; sessionId?: string };
  /** Events of these devices were committed. */
  events: { accountIds: number[]; deviceIds: number[] };
  /** Labels of the account's devices changed, or devices with labels were added. */
  labels: { accountId: number };
  /** Devices of the account were added, removed or reconfigured. */
  fleet: { accountId: number };
  /** Devices that connected or disconnected, once that is written: about one message per second and connector. */
  presence: { accounts: PresenceNotice[] };
  /** Committed values; published only for accounts whose values somebody streams. */
  measurements: { accountId: number; devices: LiveDevice[] };
  /** All accounts whose values streams of this process listen to; renewed every few seconds. */
  listeners: { process: string; accountIds: number[] };
  /** A process that stores values has started, and asks who listens. */
  'listeners-asked': Record<string, never>;
  /** A stream was opened with a ticket, for the `opening`th time. `ticket`: its hash. */
  ticket: { ticket: string; opening: number };
  /** Messages of other processes may have been missed, so whatever depends on them in a cache is stale. */
  resync: Record<string, never>;
};

export type Channel = keyof BusMessages;

/**
 * Publish and subscribe between the processes of one installation. Delivery is at most once: within this process
 * immediately and always, to others while the bus is up.
 */
export type Bus = {
  publish<C extends Channel>(channel: C, message: BusMessages[C]): void;
  /** Returns a function that ends the subscription. */
  subscribe<C extends Channel>(channel: C, listener: (message: BusMessages[C]) => void): () => void;
  close(): Promise<void>;
};

export type LocalBusOptions = {
  /** A listener threw; the others have still been called. */
  onListenerError: (error: unknown, channel: Channel) => void;
};

/** The bus of a single process. Listeners are called immediately, in the order of their subscription. */
export function createLocalBus({ onListenerError }: LocalBusOptions): Bus {
  const listeners = new Map<Channel, Set<(message: never) => void>>();
  // Listeners run outside the async context of the request that published, as if the message came from another process.
  const asNobody = AsyncLocalStorage.snapshot();
  return {
    publish(channel, message) {
      for (const listener of Array.from(listeners.get(channel) ?? [])) {
        try {
          asNobody(listener as (message: BusMessages[Channel]) => void, message);
        } catch (error) {
          onListenerError(error, channel);
        }
      }
    },
    subscribe(channel, listener) {
      const ofChannel = listeners.get(channel) ?? new Set();
      listeners.set(channel, ofChannel);
      // Wrapped, so that subscribing the same function twice makes two subscriptions.
      const own: typeof listener = (message) => listener(message);
      ofChannel.add(own);
      return () => void ofChannel.delete(own);
    },
    async close() {
      listeners.clear();
    },
  };
}
