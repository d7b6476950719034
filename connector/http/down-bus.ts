import { inTurns } from '../../src/lib/in-turns.ts';
import type { Downlink } from '../../src/contract/uplink.ts';
import type { DownTopic } from '../../src/contract/topic.ts';
import type { Log } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { Given } from './down-after.ts';
import type { Poll } from './down-poll.ts';
import type { Polls } from './down-registry.ts';

export type WakeDeps = {
  ports: Pick<ConnectorPorts, 'bus' | 'onAccountDisabled'>;
  polls: Polls;
  /** Something may be due to it. */
  wake: (poll: Poll) => void;
  end: (poll: Poll, messages: readonly Downlink[], given: Given) => void;
  log: Log;
};

/** Wakes who waits when other parts of the installation tell of something for them. Returns what ends the listening. */
export function wakePolls({ ports, polls, wake, end, log }: WakeDeps): () => void {
  const wakeAll = (uuid: string, topic: DownTopic, before: (poll: Poll) => void): void => {
    for (const poll of polls.listOf(uuid)) {
      if (!poll.topics.includes(topic)) continue;
      before(poll);
      wake(poll);
    }
  };
  /** Its client comes again, and is let in or not. */
  const endOne = (poll: Poll): void => end(poll, [], poll.given);
  const all = (does: (poll: Poll) => void): void =>
    void inTurns(polls.all, does).catch((error: unknown) =>
      log.error(
        { event: 'downlink.unread', err: error },
        'What is due for the devices that wait could not be read.',
      ),
    );
  const { bus } = ports;
  const ends = [
    ports.onAccountDisabled((accountId) =>
      all((poll) => {
        if (poll.device.accountId === accountId) endOne(poll);
      }),
    ),
    bus.subscribe('device', ({ uuid, push }) => {
      if (!push) return;
      wakeAll(uuid, push, (poll) => {
        if (push === 'profile') poll.isProfileAsked = true;
      });
    }),
    bus.subscribe('down', ({ uuid, message }) =>
      wakeAll(uuid, message.topic, (poll) => {
        // All others are read from the database.
        if (message.topic === 'errors') poll.addError(message);
      }),
    ),
    bus.subscribe('access', ({ uuid }) => {
      for (const poll of polls.listOf(uuid)) endOne(poll);
    }),
    bus.subscribe('resync', () => all(wake)),
  ];
  return () => {
    for (const stop of ends) stop();
  };
}
