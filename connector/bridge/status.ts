import type { LogContext } from '../../src/log/logger.ts';
import type { Log } from '../options.ts';
import { advise, withoutCredentials } from './advice.ts';
import type { BridgeName } from './advice.ts';
import type { Finding, Trouble } from './trouble.ts';

/** `starting`: not known yet. `standby`: another process holds the lease. */
type BridgeTrouble = Trouble | 'starting' | 'standby';

/** Why a message was not taken: from the broker, or (`not-published`) by it. */
type RefusedMessage = 'no-device-topic' | 'unknown-device' | 'not-stored' | 'not-published';

/** How things stand between a bridge and its broker. Times in milliseconds. */
export type BridgeView = {
  isConnected: boolean;
  /** Since when it is connected, or is not. */
  sinceTs: number;
  /** Why it is not connected; null where it is. */
  reason: BridgeTrouble | null;
  /** Whether it is this process's turn; null where bridges share. */
  isLeaseHeld: boolean | null;
  lastInTs: number | null;
  lastOutTs: number | null;
  refused: ReadonlyMap<RefusedMessage, number>;
};

/** Told by the bridge what happens, read by whoever shows it. */
export type BridgeStatus = {
  /** The broker has taken the subscription. */
  connected(): void;
  disconnected(finding: Finding): void;
  /** It is not for this process to be connected, or not known yet. */
  waiting(reason: 'starting' | 'standby'): void;
  leaseHeld(isHeld: boolean): void;
  /** Logs the line, once while things do not settle. */
  note(event: LogContext['event'], message: string): void;
  messageIn(): void;
  messageOut(): void;
  refused(reason: RefusedMessage): void;
  read(): BridgeView;
  /** Ends what would still be said later. */
  end(): void;
};

export type BridgeStatusOptions = {
  name: BridgeName;
  /** Whether one bridge at a time is connected. */
  hasLease: boolean;
  log: Log;
  clock: () => number;
  /** The state, its reason or the lease changed. */
  onChange?: () => void;
  /** What lasts so long has settled, in milliseconds. Until all is well again each thing is said once. */
  settleMs?: number;
};

/** They pass by themselves when the broker or the network is back. */
const passing: ReadonlySet<Trouble> = new Set([
  'closed',
  'unreachable',
  'no-answer',
  'broker-unavailable',
  'not-stored',
]);

/**
 * Keeps how things stand, and says in one line what changed. A connection that comes and goes every
 * second, or fails every second in the same way, is said once, and then what it came to.
 */
export function createBridgeStatus(options: BridgeStatusOptions): BridgeStatus {
  const { name, log, clock, onChange = () => {}, settleMs = 30_000 } = options;
  const context = { connector: name.connectorName, broker: withoutCredentials(name.url) };
  const refused = new Map<RefusedMessage, number>();
  let isConnected = false;
  let reason: BridgeTrouble | null = 'starting';
  let sinceTs = clock();
  let isLeaseHeld = options.hasLease ? false : null;
  let lastInTs: number | null = null;
  let lastOutTs: number | null = null;

  const said = new Set<string>();
  let lastSaid = '';
  let settling: NodeJS.Timeout | undefined;

  function say(key: string, speak: () => void): void {
    clearTimeout(settling);
    settling = setTimeout(() => {
      if (lastSaid !== key) speak();
      lastSaid = key;
      if (isConnected || reason === 'standby') said.clear();
    }, settleMs).unref();
    if (said.has(key)) return;
    said.add(key);
    lastSaid = key;
    speak();
  }

  function change(next: BridgeTrouble | null): boolean {
    if (next === reason) return false;
    if (isConnected !== (next === null)) sinceTs = clock();
    isConnected = next === null;
    reason = next;
    onChange();
    return true;
  }

  return {
    connected() {
      if (change(null))
        say('connected', () =>
          log.info(
            { event: 'bridge.connected', ...context, filter: name.filter },
            'The broker is connected.',
          ),
        );
    },
    disconnected(finding) {
      const { trouble, code, detail } = finding;
      const [level, event] = passing.has(trouble)
        ? (['warn', 'bridge.disconnected'] as const)
        : (['error', 'bridge.refused'] as const);
      if (change(trouble))
        say(trouble, () =>
          log[level]({ event, ...context, reason: trouble, code, detail }, advise(name, finding)),
        );
    },
    waiting(next) {
      if (!change(next) || next === 'starting') return;
      say(next, () =>
        log.info(
          { event: 'bridge.standby', ...context },
          'Another process holds the lease; this one stands by.',
        ),
      );
    },
    leaseHeld(isHeld) {
      if (isLeaseHeld === isHeld) return;
      isLeaseHeld = isHeld;
      onChange();
    },
    note(event, message) {
      if (said.has(message)) return;
      said.add(message);
      log.warn({ event, ...context }, message);
    },
    messageIn: () => void (lastInTs = clock()),
    messageOut: () => void (lastOutTs = clock()),
    refused: (why) => void refused.set(why, (refused.get(why) ?? 0) + 1),
    read: () => ({ isConnected, sinceTs, reason, isLeaseHeld, lastInTs, lastOutTs, refused }),
    end: () => clearTimeout(settling),
  };
}
