import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { LogContext } from '../../src/log/logger.ts';
import type { DevicePorts, Log, Observer } from '../ports.ts';
import { isUnanswered } from './mqtt-js.ts';
import type { Clock, MonotonicClock } from '../../src/lib/clock-readings.ts';

/** `starting`: not known yet. `standby`: another process holds the lease. */
type BridgeReason = BrokerError | 'starting' | 'standby';

/** Why a message was not taken: from the broker, or (`not-published`) by it. */
type RefusedMessage = 'no-device-topic' | 'unknown-device' | 'not-stored' | 'not-published';

/** How things stand between a bridge and its broker. Times in milliseconds. */
export type BridgeView = {
  isConnected: boolean;
  /** Since when the bridge has been connected or disconnected. */
  sinceTs: number;
  /** Why it is not connected; null where it is. */
  reason: BridgeReason | null;
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

type BridgeStatusOptions = {
  name: BridgeName;
  /** Whether one bridge at a time is connected. */
  hasLease: boolean;
  log: Log;
  clock: Clock;
  /** The state, its reason or the lease changed. */
  onChange?: () => void;
  /** What lasts so long has settled, in milliseconds. Until all is well again each thing is said once. */
  settleMs?: number;
};

/** They pass by themselves when the broker or the network is back. */
const passing: ReadonlySet<BrokerError> = new Set([
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
  let reason: BridgeReason | null = 'starting';
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

  function change(next: BridgeReason | null): boolean {
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
            'Connected to the broker.',
          ),
        );
    },
    disconnected(finding) {
      const { brokerError, code, detail } = finding;
      const [level, event] = passing.has(brokerError)
        ? (['warn', 'bridge.disconnected'] as const)
        : (['error', 'bridge.refused'] as const);
      if (change(brokerError))
        say(brokerError, () =>
          log[level](
            { event, ...context, reason: brokerError, code, detail },
            advise(name, finding),
          ),
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

/** The bridge as its log lines name it. */
type BridgeName = {
  connectorName: string;
  url: string;
  username?: string | undefined;
  filter: string;
};

/** The address without what may be secret in it: user name, password and query. */
export function withoutCredentials(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}

/** One line: what is wrong between this connector and its broker, and what to do about it. */
function advise(name: BridgeName, finding: Finding): string {
  const { connectorName } = name;
  const at = withoutCredentials(name.url);
  const user = name.username === undefined ? '' : ` ("${name.username}")`;
  const sentences: Record<BrokerError, () => string> = {
    'refused-credentials': () =>
      `The broker refused the user name${user} or password of connector "${connectorName}": ` +
      'check broker.username and broker.passwordFile, and that the broker accepts this user.',
    'refused-client-id': () =>
      `The broker refused the client identifier of connector "${connectorName}": check which ` +
      `identifiers it allows user${user} to use.`,
    'protocol-version': () =>
      `The broker of connector "${connectorName}" does not support MQTT 5, which a bridge ` +
      'requires: enable MQTT 5 at the broker, or use a broker that supports it.',
    'shared-subscriptions': () =>
      `The broker refused the shared subscription of connector "${connectorName}" ` +
      `(${name.filter}): allow $share at the broker, or set broker.shareName to null so that ` +
      'only one bridge connects at a time.',
    'refused-subscription': () =>
      `The broker does not allow connector "${connectorName}" to subscribe to ${name.filter}: ` +
      `give its user${user} read access to devices/+/up/# there.`,
    certificate: () => adviseOnCertificate(name, finding),
    tls: () =>
      `No TLS connection to the broker of connector "${connectorName}" at ${at}: check that ` +
      'this port accepts TLS, or use mqtt: or ws: in broker.url.',
    unreachable: () =>
      `The broker of connector "${connectorName}" cannot be reached at ${at}: check ` +
      'broker.url, that the broker is running, and the network in between.',
    'no-answer': () =>
      `The broker of connector "${connectorName}" at ${at} does not answer: check that ` +
      'broker.url names an MQTT broker, that the broker is not overloaded, and the network in ' +
      'between.',
    'closed-at-connect': () =>
      `The broker of connector "${connectorName}" at ${at} closed the connection instead of ` +
      'answering: check that it supports MQTT 5, and whether that port expects TLS (mqtts: or ' +
      'wss: in broker.url).',
    closed: () =>
      `The connection of connector "${connectorName}" to the broker at ${at} was lost: the ` +
      'broker stopped or the network failed. The bridge keeps reconnecting until the broker is ' +
      'back.',
    'session-taken': () =>
      'Another client connected to the broker with the client identifier of connector ' +
      `"${connectorName}": give each installation that uses this broker its own ` +
      'broker.username and broker.shareName.',
    'broker-unavailable': () =>
      `The broker of connector "${connectorName}" at ${at} reports that it is unavailable or ` +
      'has moved: check the broker.',
    limit: () =>
      `The broker of connector "${connectorName}" at ${at} ended the connection because a ` +
      `limit was exceeded: raise the limits for user${user} (messages in flight, packet size, ` +
      'rate).',
    'not-stored': () =>
      `Connector "${connectorName}" closed its connection to the broker at ${at} so that the ` +
      'broker redelivers what could not be stored: the previous log line says why.',
    'protocol-error': () =>
      `The server that answers connector "${connectorName}" at ${at} violates MQTT 5: check ` +
      "that broker.url names an MQTT 5 broker, and read that broker's log.",
  };
  return sentences[finding.brokerError]();
}

function adviseOnCertificate({ connectorName, url }: BridgeName, { code }: Finding): string {
  const { hostname } = new URL(url);
  const which = `The certificate of the broker of connector "${connectorName}"`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH')
    return (
      `${which} is not valid for ${hostname}: use the name in the certificate in broker.url, or ` +
      `give the broker a certificate for ${hostname}.`
    );
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return (
      `${which} is expired or not valid yet: renew it at the broker, and check the clocks of ` +
      'both machines.'
    );
  return (
    `${which} is not signed by an authority that this process trusts: set broker.caFile to the ` +
    'certificate (PEM) of the authority that signed it.'
  );
}

/** What a bridge is given: it is the broker that lets devices in. */
export type BridgePorts = DevicePorts & {
  /** The device that a topic names; null when there is none. Rejects with `unavailable`. */
  identify(uuid: string): Promise<DeviceIdentity | null>;
};

/** The right to be the one that is connected. */
export type Lease = {
  /** Gives back what is held, so that somebody else gets it, and competes no more for now. */
  rest(): void;
  /** Competes again after a rest. */
  compete(): void;
  /** Whether who decides about it answers. */
  isThere(): boolean;
  /** Gives back what is held once `finish` has settled. */
  release(finish: () => Promise<void>): Promise<void>;
};

/**
 * Competes for a lease. `onLost` comes before anybody else has it; `onWaiting` says, once until it is
 * held, that somebody else does.
 */
export type StartLease = (holder: {
  onHeld: () => void;
  onLost: () => void;
  onWaiting: () => void;
}) => Promise<Lease>;

/** What the holder of a lease is told by its bridge. */
export type LeaseTerm = {
  /** The broker has taken the subscription. */
  onServed: () => void;
  /** Nothing was heard of a broker that serves it for some seconds; said again and again. */
  onSilent: () => void;
};

export type BridgeOptions = {
  broker: BrokerAddress;
  /** Largest packet that the broker is to pass on. */
  maxPacketBytes: number;
  /** Of one message so many rejections are told one by one, the others counted. */
  rejectionsPerMessage: number;
  log: Log;
  /** A clock that only goes forward, in milliseconds. */
  now: MonotonicClock;
  status: BridgeStatus;
  observe?: Pick<Observer, 'message' | 'acknowledged'>;
  /** Has `pause` told when nothing more is to be taken in, and when it is again; gives back what ends that. */
  addIntake?: (pause: (isPaused: boolean) => void) => () => void;
};

/** The external broker, and who the bridge is there. */
export type BrokerAddress = {
  url: string;
  /**
   * The broker keeps what was not acknowledged under this name. With a share name it is the same
   * whenever this bridge starts, and no other one's; without, that of all who compete for the lease.
   */
  clientId: string;
  username?: string | undefined;
  password?: string | undefined;
  /** Certificates (PEM) that the broker's is checked against, besides the usual ones. */
  ca?: Buffer | undefined;
  /** All bridges with the same name share the messages; null: whoever is connected gets them all. */
  shareName: string | null;
};

/** Why a bridge is not connected, as far as the broker or the way there says it. */
type BrokerError =
  | 'refused-credentials'
  | 'refused-client-id'
  | 'protocol-version'
  | 'shared-subscriptions'
  | 'refused-subscription'
  | 'certificate'
  | 'tls'
  | 'unreachable'
  | 'no-answer'
  | 'closed-at-connect'
  | 'closed'
  | 'session-taken'
  | 'broker-unavailable'
  | 'limit'
  | 'not-stored'
  | 'protocol-error';

/** What was found, and in which words; `code` is the library's, Node's or the broker's. */
export type Finding = { brokerError: BrokerError; code?: string | number; detail?: string };

/** Reason codes of MQTT 5 (section 2.4) and, below 0x80, return codes of MQTT 3.1.1 (section 3.2.2.3). */
const reasonCodes: Record<number, BrokerError> = {
  0x01: 'protocol-version',
  0x02: 'refused-client-id',
  0x03: 'broker-unavailable',
  0x04: 'refused-credentials',
  0x05: 'refused-credentials',
  0x84: 'protocol-version',
  0x85: 'refused-client-id',
  0x86: 'refused-credentials',
  // Mosquitto says so of a wrong password too.
  0x87: 'refused-credentials',
  0x88: 'broker-unavailable',
  0x89: 'broker-unavailable',
  0x8a: 'refused-credentials',
  0x8b: 'broker-unavailable',
  0x8c: 'refused-credentials',
  0x8d: 'no-answer',
  0x8e: 'session-taken',
  0x93: 'limit',
  0x95: 'limit',
  0x96: 'limit',
  0x97: 'limit',
  0x9c: 'broker-unavailable',
  0x9d: 'broker-unavailable',
  0x9e: 'shared-subscriptions',
  0x9f: 'limit',
};

/** Of OpenSSL's checks of a certificate, as Node names them (tls, "X509 certificate error codes"). */
const certificateCodes = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** What the broker's CONNACK or DISCONNECT says. */
export function readReasonCode(code: number): Finding {
  return { brokerError: reasonCodes[code] ?? 'protocol-error', code };
}

/** What its SUBACK says (section 3.9.3). `isShared`: the filter begins with `$share`. */
export function readRefusedSubscription(code: number, isShared: boolean): Finding {
  // "Topic Filter invalid" is what brokers say of a $share that they take for a topic.
  const isShare = code === 0x9e || (isShared && code === 0x8f);
  return { brokerError: isShare ? 'shared-subscriptions' : 'refused-subscription', code };
}

/** What an error of the client, of TLS or of the socket says. */
export function readError(error: Error): Finding {
  const { code } = error as { code?: unknown };
  const detail = error.message;
  if (typeof code === 'number') return { ...readReasonCode(code), detail };
  if (typeof code !== 'string')
    return { brokerError: isUnanswered(error) ? 'no-answer' : 'protocol-error', detail };
  if (certificateCodes.has(code)) return { brokerError: 'certificate', code, detail };
  if (code === 'ECONNRESET' || code === 'EPIPE') return { brokerError: 'closed', code, detail };
  if (/SSL|TLS|EPROTO/.test(code)) return { brokerError: 'tls', code, detail };
  return { brokerError: 'unreachable', code, detail };
}
