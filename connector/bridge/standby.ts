import { randomUUID } from 'node:crypto';
import { connect } from 'mqtt';
import { backoffMs, pause } from '../../src/lib/wait.ts';
import type { Log } from '../ports.ts';
import type { Bridge } from './bridge.ts';
import { refusalCodeOf } from './mqtt-js.ts';
import {
  type BridgeStatus,
  type BrokerAddress,
  type Lease,
  type LeaseTerm,
  type StartLease,
  withoutCredentials,
} from './status.ts';

/** How long a process that could not reach the broker leaves the lease to others. */
type RestPace = {
  /** After the first failed term; twice that after the next, and so on. */
  firstMs: number;
  maxMs: number;
  /** After that, the interval at which it checks whether the broker answers. */
  probeMs: number;
};

const usualRest: RestPace = { firstMs: 3_000, maxMs: 30_000, probeMs: 1_000 };

type StandBy = {
  /** Closes the bridge; afterwards another process may take over. */
  close(options: { drainMs: number }): Promise<void>;
  /** Whether it is connected, or could take over: another process holds the lease, and this one competes for it. */
  isReady(): boolean;
};

/**
 * Runs the bridge only while this process holds the lease. To the broker all processes that compete are the same
 * client, so the next holder takes over the session with everything that was not acknowledged, in its order. What the
 * previous holder had under way is redelivered, and is stored once.
 *
 * A holder that cannot reach the broker gives up the lease. It competes again only when others had time to try and the
 * broker answers. While the broker is away for all of them, each tries once and then all wait.
 */
export async function startStandBy(deps: {
  broker: Pick<BrokerAddress, 'url' | 'ca'>;
  startLease: StartLease;
  startBridge: (term: LeaseTerm) => Bridge;
  status: BridgeStatus;
  log: Log;
  rest?: RestPace;
}): Promise<StandBy> {
  const { broker, startLease, startBridge, status, log, rest = usualRest } = deps;
  const stopping = new AbortController();
  const term: { bridge: Bridge | null } = { bridge: null };
  let termsInVain = 0;

  function drop(): void {
    term.bridge?.abandon();
    term.bridge = null;
    status.leaseHeld(false);
  }

  const lease: Lease = await startLease({
    onHeld() {
      status.leaseHeld(true);
      status.waiting('starting');
      term.bridge = startBridge({ onServed: () => (termsInVain = 0), onSilent: giveUp });
    },
    onLost() {
      const context = { broker: withoutCredentials(broker.url) };
      log.warn(
        { event: 'bridge.lease-lost', ...context },
        'The lease is lost; another process may serve the broker.',
      );
      drop();
      status.waiting('starting');
    },
    onWaiting: () => status.waiting('standby'),
  });
  if (term.bridge) await term.bridge.ready;

  function giveUp(): void {
    status.note(
      'bridge.lease-given-up',
      'No connection to the broker; giving up the lease so that another process can take it.',
    );
    drop();
    lease.rest();
    termsInVain += 1;
    void competeLater();
  }

  async function competeLater(): Promise<void> {
    await pause(backoffMs(termsInVain, rest), stopping.signal);
    while (!stopping.signal.aborted && !(await isBrokerThere(broker)))
      await pause(rest.probeMs, stopping.signal);
    if (!stopping.signal.aborted) lease.compete();
  }

  return {
    close(options) {
      stopping.abort();
      return lease.release(async () => term.bridge?.close(options));
    },
    isReady() {
      const { isConnected, reason } = status.read();
      return isConnected || (reason === 'standby' && lease.isThere());
    },
  };
}

const patienceMs = 2_000;

/**
 * Whether a broker answers, even with a refusal. Sends no user name or password: a broker that uses the user name as
 * the client identifier would close the connection of the bridge that has it.
 */
function isBrokerThere({ url, ca }: Pick<BrokerAddress, 'url' | 'ca'>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const address = new URL(url);
  address.username = '';
  address.password = '';
  const client = connect(address.href, {
    protocolVersion: 5,
    clientId: `probe-${randomUUID()}`,
    clean: true,
    reconnectPeriod: 0,
    connectTimeout: patienceMs,
    ...(ca === undefined ? {} : { ca }),
  });
  client
    .on('connect', () => resolve(true))
    // A refusal is an answer.
    .on('error', (error) => resolve(refusalCodeOf(error) !== null))
    .on('close', () => resolve(false));
  return promise.finally(() => client.end(true));
}
