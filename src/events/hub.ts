import type { Bus } from '../bus/bus.ts';
import { createSlices } from '../streams/slices.ts';
import type { Audience } from './audience.ts';
import { Follower, type EventMember, type FollowerOptions } from './follower.ts';

export type HubOptions = Pick<FollowerOptions, 'db' | 'heartbeatMs' | 'monotonicClock' | 'room'> & {
  bus: Bus;
};

/** A stream that follows its account. */
export type Followed = {
  member: EventMember;
  leave(): void;
};

/** All event streams of this process, by account. */
export type Hub = {
  /** From then on the member is given what is committed for the audience. */
  join(audience: Audience): Promise<Followed>;
  /** Runs what one stream asks of the database for itself: one of an account's at a time. */
  alone<T>(accountId: number, work: () => Promise<T>): Promise<T>;
};

/** Subscribes to the bus and queries the database only while there are streams. */
export function createHub({ bus, ...options }: HubOptions): Hub {
  const followers = new Map<number, Follower>();
  const lines = new Map<number, Promise<unknown>>();
  const takeTurn = createSlices();
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('events', ({ accountIds }) => {
        for (const accountId of accountIds) followers.get(accountId)?.wake();
      }),
      bus.subscribe('resync', () => {
        for (const follower of followers.values()) follower.wake();
      }),
    ];
  };
  const follow = (accountId: number): Follower => {
    if (followers.size === 0) listen();
    const onEnd = () => {
      followers.delete(accountId);
      if (followers.size === 0) for (const end of ends) end();
    };
    const follower = new Follower({ ...options, accountId, takeTurn, onEnd });
    followers.set(accountId, follower);
    return follower;
  };

  return {
    async join(audience) {
      const { accountId } = audience;
      const follower = followers.get(accountId) ?? follow(accountId);
      const member = await follower.join(audience);
      return { member, leave: () => follower.leave(member) };
    },
    async alone(accountId, work) {
      const before = lines.get(accountId);
      const own = (async () => {
        await before;
        return work();
      })();
      const settled = own.then(
        () => undefined,
        () => undefined,
      );
      lines.set(accountId, settled);
      try {
        return await own;
      } finally {
        if (lines.get(accountId) === settled) lines.delete(accountId);
      }
    },
  };
}
