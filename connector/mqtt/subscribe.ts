import type { Client, Subscription as Requested } from 'aedes';
import { findMatchedTopics, type DownTopic } from '../../src/contract/topic.ts';
import { findConnection } from './connection.ts';
import { channelOf, type DeliverDeps } from './deliver.ts';
import { maxFilterLength } from './frame-scanner.ts';
import { DownlinkQueue } from '../device/downlinks.ts';
import type { DownlinkDeps } from '../device/downlink-sender.ts';
import type { ConnectorLimits } from '../options.ts';

/** A filter and what it was granted: a QoS, or 128. */
type Granted = { topic: string; qos: number };
const refused = 128;

type Done = (error: Error | null, subscription?: Requested | null) => void;

export type Subscriber = ReturnType<typeof createSubscriber>;

/** A device may listen to its own `down/…`; anything else is answered 128, MQTT 3.1.1 section 3.9.3. */
export function createSubscriber(
  limits: ConnectorLimits,
  deps: DownlinkDeps,
  deliver: DeliverDeps,
) {
  return {
    authorize(client: Client, requested: Requested, done: Done): void {
      const connection = findConnection(client);
      const { topic: filter, qos } = requested;
      const prefix = connection?.device?.downPrefix;
      if (!connection || prefix === undefined || filter.length > maxFilterLength)
        return done(null, null);
      const topics = findMatchedTopics(filter, prefix);
      if (topics === null) return done(null, null);
      const others = connection.subscriptions.filter((known) => known.filter !== filter);
      if (others.length >= limits.maxSubscriptions) return done(null, null);
      const spelled = filter.slice(0, prefix.length);
      connection.subscriptions = [...others, { filter, qos, topics, prefix: spelled }];
      done(null, requested);
    },

    /** SUBACK is on its way: what the device is to know follows, each time it subscribes. */
    onSubscribed(client: Client, granted: Granted[]): void {
      const connection = findConnection(client);
      if (!connection?.device || connection.stage === 'closed') return;
      const { device } = connection;
      const topics = new Set<DownTopic>();
      for (const { topic, qos } of granted)
        if (qos !== refused)
          for (const matched of findMatchedTopics(topic, device.downPrefix) ?? [])
            topics.add(matched);
      if (topics.size === 0) return;
      connection.downlinks ??= new DownlinkQueue(channelOf(connection, device, deliver), deps);
      connection.downlinks.subscribed([...topics]);
    },

    onUnsubscribed(client: Client, filters: string[]): void {
      const connection = findConnection(client);
      if (!connection) return;
      connection.subscriptions = connection.subscriptions.filter(
        ({ filter }) => !filters.includes(filter),
      );
    },
  };
}
