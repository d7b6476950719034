import { waitAtMost, waitUntil } from '../../src/lib/wait.ts';
import { createArrivals } from './arrivals.ts';
import { createBrokerClient } from './client.ts';
import { startBridgeDownlinks } from './downlinks.ts';
import { isUnavailableError } from '../failure.ts';
import type { BridgeOptions, BridgePorts, LeaseTurn } from './ports.ts';
import { createUnacknowledged } from './unacknowledged.ts';

export type Bridge = {
  /** Resolves when the devices are served; after a while also when the broker is still away. */
  ready: Promise<void>;
  /** Takes nothing new; what is under way is stored and acknowledged, or neither, within `drainMs`. */
  close(options: { drainMs: number }): Promise<void>;
  /** Ends at once: nothing is read, acknowledged or published after it returns. */
  abandon(): void;
};

/** QoS 1 messages that the broker sends ahead of their commit: what shares transactions. */
const maxUnacked = 2_000;
const maxUnackedBytes = 33_554_432;
/** For the first subscription; a broker that is away longer is waited for beside everything else. */
const patienceMs = 5_000;

/**
 * Serves the devices of an external MQTT 5 broker, as a member of a shared subscription (MQTT 5
 * section 4.8.2) or alone: a message is acknowledged to the broker once it is committed, and what
 * the broker redelivers changes nothing.
 */
export function startBridge(
  options: BridgeOptions,
  ports: BridgePorts,
  { onServed = () => {}, onSilent = () => {} }: Partial<LeaseTurn> = {},
): Bridge {
  const { broker, maxPacketBytes, rejectionsPerMessage, log, now, status, observe } = options;
  const stopping = new AbortController();
  const { addIntake = () => () => {} } = options;
  let isDraining = false;
  const unacknowledged = createUnacknowledged(
    { maxMessages: maxUnacked * 2, maxBytes: maxUnackedBytes },
    ({ sinceMs }) => observe?.acknowledged((now() - sinceMs) / 1_000),
  );
  const endPausing = addIntake(unacknowledged.pause);
  const client = createBrokerClient({
    broker,
    maxPacketBytes,
    maxUnacked,
    now,
    status,
    onSubscribed: onServed,
    onSilent,
    onMessage(topic, payload, held, next) {
      // Never asked for the next one: what is not taken is not acknowledged.
      if (isDraining) return;
      unacknowledged.hold(held);
      arrivals.accept(
        topic,
        payload,
        () => unacknowledged.settle(held),
        (err) => {
          unacknowledged.giveUp(held);
          if (isDraining) return;
          status.refused('not-stored');
          // Ingest says once why a whole batch is not stored for now.
          if (!isUnavailableError(err))
            log.error(
              { event: 'message.not-stored', err, topic },
              'A message was not stored; the broker is asked to send it again.',
            );
          client.restart();
        },
      );
      unacknowledged.whenRoom(next);
    },
    onClosed: unacknowledged.forgetOrder,
  });
  const downlinks = startBridgeDownlinks({ ports, log, publish: client.publish, now });
  const arrivals = createArrivals({
    ports,
    rejectionsPerMessage,
    log,
    now,
    status,
    observe: observe ?? { message() {} },
    onHeard: downlinks.heard,
    stopping: stopping.signal,
  });
  client.connect();
  const { promise: ended, resolve: markEnded } = Promise.withResolvers<void>();

  async function waitForBroker(): Promise<void> {
    const isThere = await waitAtMost(Promise.race([client.subscribed, ended]), patienceMs);
    if (!isThere && status.read().reason === 'starting')
      status.disconnected({ trouble: 'no-answer' });
  }

  function end(): void {
    endPausing();
    downlinks.end();
    stopping.abort();
    markEnded();
  }

  return {
    ready: waitForBroker(),
    async close({ drainMs }) {
      isDraining = true;
      client.stopListening();
      await waitUntil(() => unacknowledged.count() === 0, drainMs);
      end();
      await client.close();
    },
    abandon() {
      isDraining = true;
      client.abandon();
      end();
    },
  };
}
