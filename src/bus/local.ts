import { AsyncLocalStorage } from 'node:async_hooks';
import type { Bus, BusMessages, Channel } from './bus.ts';

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
