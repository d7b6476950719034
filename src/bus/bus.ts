import { AsyncLocalStorage } from 'node:async_hooks';
import type { Downlink } from '../contract/uplink.ts';

/** `sId`, `ts`, `val`; of a position `sId`, `ts`, `lat`, `long`. */
export type LiveValue = [string, number, number] | [string, number, number, number];
/** A device as it was written last; `connectorId`: where it is connected or was heard last. `seenTs`: ms. */
export type PresentDevice = {
  deviceId: number;
  uuid: string;
  connected: boolean;
  connectorId: number;
  seenTs: number;
};
/** Devices of an account that connected or left; null: more than are named. */
export type PresenceNotice = { accountId: number; devices: PresentDevice[] | null };

export type LiveDevice = { deviceId: number; uuid: string; values: LiveValue[] };

/** What one process tells the others. Nothing here is the only copy: what matters is in the database. */
export type BusMessages = {
  /** Something `ingest` or a connector may have cached of this device changed; `push` names what to hand over. */
  device: { deviceId: number; uuid: string; push?: 'profile' | 'configuration' };
  /** A message for the device's live connections, wherever they are. */
  down: { uuid: string; message: Downlink };
  /** The device's credentials changed: cached versions are stale, connections it no longer opens are closed. */
  access: { deviceId: number; uuid: string };
  /** A device connected somewhere as this session: older connections of the same session give way. */
  session: { uuid: string; clientId: string; connection: string };
  /** An account was removed: its devices' connections and its streams end. */
  removed: { accountId: number };
  /** An account's token sessions ended: all of them, or the one named. */
  revoked: { accountId: number; sessionId?: string };
  /** Events of these devices were committed. */
  events: { accountIds: number[]; deviceIds: number[] };
  /** Labels of devices of the account changed, or devices with labels were added. */
  labels: { accountId: number };
  /** Devices of the account were added, removed or configured anew. */
  fleet: { accountId: number };
  /** Who connected or left, once it is written: about one message a second of each connector. */
  presence: { accounts: PresenceNotice[] };
  /** Values that were committed; published only for accounts to whose values somebody listens. */
  measurements: { accountId: number; devices: LiveDevice[] };
  /** To whose values streams of this process listen: all of them, renewed every few seconds. */
  listeners: { process: string; accountIds: number[] };
  /** A process that stores values began: who listens is to say so. */
  'listeners-asked': Record<string, never>;
  /** A ticket was opened, so often until now; `ticket`: its hash. */
  ticket: { ticket: string; opening: number };
  /** Messages of other processes may have been missed: whatever was cached because of them is stale. */
  resync: Record<string, never>;
};

export type Channel = keyof BusMessages;

/**
 * Publish and subscribe between the processes of one installation. Delivery is at most once:
 * within this process at once and always, to others while the bus is up.
 */
export type Bus = {
  publish<C extends Channel>(channel: C, message: BusMessages[C]): void;
  /** Returns what ends the subscription. */
  subscribe<C extends Channel>(channel: C, listener: (message: BusMessages[C]) => void): () => void;
  close(): Promise<void>;
};

export type LocalBusOptions = {
  /** A listener threw; the others have still been called. */
  onListenerError: (error: unknown, channel: Channel) => void;
};

/** The bus of a single process: listeners are called at once, in the order of their subscription. */
export function createLocalBus({ onListenerError }: LocalBusOptions): Bus {
  const listeners = new Map<Channel, Set<(message: never) => void>>();
  // As if the message came from another process: what listeners do is no part of the request that published it.
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
      // Wrapped, so that the same function subscribed twice is two subscriptions.
      const own: typeof listener = (message) => listener(message);
      ofChannel.add(own);
      return () => void ofChannel.delete(own);
    },
    async close() {
      listeners.clear();
    },
  };
}
