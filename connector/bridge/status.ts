import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { LogContext } from '../../src/log/logger.ts';
import type { DevicePorts, Log, Observer } from '../ports.ts';
import { isUnanswered } from './mqtt-js.ts';
import type { Clock, MonotonicClock } from '../../src/lib/clock-readings.ts';

/** `starting`: not known yet. `standby`: another process holds the lease. */
type BridgeReason = BrokerError | 'starting' | 'standby';

/** Why a message from the broker was not taken, or (`not-published`) one to it was not. */
type RefusedMessage = 'no-device-topic' | 'unknown-device' | 'not-stored' | 'not-published';

/** The state of a bridge's connection to its broker. Times in milliseconds. */
export type BridgeView = {
  isConnected: boolean;
  /** Since when the bridge has been connected or disconnected. */
  sinceTs: number;
  /** Why it is not connected; null if it is. */
  reason: BridgeReason | null;
  /** Whether this process holds the lease; null if bridges share the messages. */
  isLeaseHeld: boolean | null;
  lastInTs: number | null;
  lastOutTs: number | null;
  refused: ReadonlyMap<RefusedMessage, number>;
};

/** Written by the bridge, read by whatever shows it. */
export type BridgeStatus = {
  /** The broker has granted the subscription. */
  connected(): void;
  disconnected(finding: Finding): void;
  /** This process is not to be connected now, or that is not known yet. */
  waiting(reason: 'starting' | 'standby'): void;
  leaseHeld(isHeld: boolean): void;
  /** Logs the line, but only once until things settle. */
  note(event: LogContext['event'], message: string): void;
  messageIn(): void;
  messageOut(): void;
  refused(reason: RefusedMessage): void;
  read(): BridgeView;
  /** Cancels log lines that are still due. */
  end(): void;
};

type BridgeStatusOptions = {
  name: BridgeName;
  /** Whether only one bridge at a time is connected. */
  hasLease: boolean;
  log: Log;
  clock: Clock;
  /** Called when the state, its reason or the lease has changed. */
  onChange?: () => void;
  /** A state that lasts this long has settled, in milliseconds. Until all is well again each line is logged once. */
  settleMs?: number;
};

/** Errors that pass by themselves when the broker or the network is back. */
const passing: ReadonlySet<BrokerError> = new Set([
  'closed',
  'unreachable',
  'no-answer',
  'broker-unavailable',
  'not-stored',
]);

/**
 * Keeps the state of the connection, and logs each change in one line. A connection that comes and goes every second,
 * or fails every second in the same way, is logged once, and again with the state in which it settles.
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

/** The address without anything secret: user name, password and query. */
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

/** What a bridge needs. Devices log in to the broker, not here. */
export type BridgePorts = DevicePorts & {
  /** The device that a topic names; null if there is none. Rejects with `unavailable`. */
  identify(uuid: string): Promise<DeviceIdentity | null>;
};

/** The right to be the connected bridge. */
export type Lease = {
  /** Gives up the lease for others, and does not compete for now. */
  rest(): void;
  /** Competes again after a rest. */
  compete(): void;
  /** Whether the authority over the lease answers. */
  isThere(): boolean;
  /** Gives up the lease once `finish` has settled. */
  release(finish: () => Promise<void>): Promise<void>;
};

/**
 * Competes for a lease. `onLost` is called before anybody else has it. `onWaiting` is called once, until the lease is
 * held, if somebody else has it.
 */
export type StartLease = (holder: {
  onHeld: () => void;
  onLost: () => void;
  onWaiting: () => void;
}) => Promise<Lease>;

/** What a bridge tells the holder of the lease. */
export type LeaseTerm = {
  /** The broker has granted the subscription. */
  onServed: () => void;
  /** A broker that serves this bridge was silent for some seconds; called again and again. */
  onSilent: () => void;
};

export type BridgeOptions = {
  broker: BrokerAddress;
  /** The largest packet that the broker is to pass on. */
  maxPacketBytes: number;
  /** How many rejections of a message are reported one by one; the rest are counted. */
  rejectionsPerMessage: number;
  log: Log;
  /** A monotonic clock, ms. */
  now: MonotonicClock;
  status: BridgeStatus;
  observe?: Pick<Observer, 'messages' | 'acknowledged'>;
  /** Registers a function that pauses the intake while memory is low. Returns a function that removes it. */
  addIntake?: (pause: (isPaused: boolean) => void) => () => void;
};

/** The external broker, and the bridge's login there. */
export type BrokerAddress = {
  url: string;
  /**
   * The broker keeps what was not acknowledged under this name. With a share name it stays the same over restarts and
   * belongs to this bridge alone. Without, all processes that compete for the lease have the same one.
   */
  clientId: string;
  username?: string | undefined;
  password?: string | undefined;
  /** Certificates (PEM) to check the broker's against, besides the usual ones. */
  ca?: Buffer | undefined;
  /** All bridges with the same name share the messages; null: the one connected bridge gets all of them. */
  shareName: string | null;
};

/** Why a bridge is not connected, as far as the broker or the connection shows it. */
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

/** What was found. `code` is from the library, Node or the broker. */
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
  // Mosquitto sends this for a wrong password too.
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

/** Codes of OpenSSL's certificate checks, as Node names them (tls, "X509 certificate error codes"). */
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

/** What the broker's CONNACK or DISCONNECT means. */
export function readReasonCode(code: number): Finding {
  return { brokerError: reasonCodes[code] ?? 'protocol-error', code };
}

/** What the broker's SUBACK means (section 3.9.3). `isShared`: the filter begins with `$share`. */
export function readRefusedSubscription(code: number, isShared: boolean): Finding {
  // Brokers that take $share for a topic answer "Topic Filter invalid".
  const isShare = code === 0x9e || (isShared && code === 0x8f);
  return { brokerError: isShare ? 'shared-subscriptions' : 'refused-subscription', code };
}

/** What an error of the client, of TLS or of the socket means. */
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
