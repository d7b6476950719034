import type { AuthenticateError, Client, ConnectPacket } from 'aedes';
import { type DeviceIdentity, isBelow, upPrefix } from '../../src/contract/uplink.ts';
import { findConnection, type Connection } from './connection.ts';
import { type Registry, noticeLimit } from './sessions.ts';
import {
  type ConnectionRefusal,
  type ConnectorLimits,
  type ConnectorPorts,
  type DeviceLogin,
  isUnavailableError,
  type Log,
  type LoginRefusal,
  mostMeasurementBytes,
} from '../ports.ts';
import { answerConnect } from './aedes.ts';
import { connack, connackRefusal, refusalCodes, type Welcome } from './v5.ts';
import type { LogRefusedLogin } from '../device/refused-logins.ts';
import type { V5Session } from './connect-packet.ts';

// CONNACK return codes, MQTT 3.1.1 section 3.2.2.3.
const identifierRejected = 2;
const serverUnavailable = 3;
const notAuthorized = 5;

type Done = (error: AuthenticateError | null, success: boolean | null) => void;

type AuthenticatorDeps = {
  ports: ConnectorPorts;
  registry: Registry;
  limits: ConnectorLimits;
  /** How many messages of one connection may wait for their commit. */
  maxUnackedMessages: number;
  log: Log;
  logRefused: LogRefusedLogin;
};

export type Authenticator = ReturnType<typeof createAuthenticator>;

/** Logs devices in: reads the CONNECT, checks the credentials and the limits, and answers. */
export function createAuthenticator(deps: AuthenticatorDeps) {
  const { ports, registry, limits, maxUnackedMessages, log, logRefused } = deps;
  const underCheck = new Set<Connection>();

  /** Rewrites the CONNECT for aedes, which gets a session of its own that ends with the connection. */
  function prepare(client: Client, packet: ConnectPacket): void {
    const connection = findConnection(client);
    if (!connection) return;
    // In MQTT 5 a client without an identifier is assigned one. [MQTT-3.1.3-6]
    connection.clientId = connection.v5 ? packet.clientId || connection.id : packet.clientId;
    connection.will = packet.will ?? null;
    connection.keepaliveMs = keepaliveOf(packet.keepalive ?? 0, limits) * 1_000;
    connection.needsIdentifier = !connection.v5 && packet.clientId === '' && packet.clean === false;
    packet.clientId = connection.id;
    packet.clean = true;
    // We watch the keep-alive ourselves: a device that we do not read is not to blame for its silence.
    packet.keepalive = 0;
  }

  async function check(
    connection: Connection,
    credentials: DeviceLogin,
  ): Promise<ConnectionRefusal | null> {
    const tell = (of: { uuid: string; accountId?: number }, reason: LoginRefusal) => {
      const { uuid, accountId } = of;
      ports.loginRefused?.({ uuid, accountId, reason, address: credentials.address });
    };
    // [MQTT-3.1.3-8]
    if (connection.needsIdentifier) {
      tell({ uuid: credentials.username.toLowerCase() }, 'no-client-identifier');
      return 'identifier';
    }
    const identity = await ports.authenticateDevice(credentials);
    if (!identity) return 'not-authorized';
    // Access changed during the check, so the answer may be older than the change.
    if (connection.isDoubtful && !(await ports.isStillAllowed(identity, credentials)))
      return 'not-authorized';
    const { will } = connection;
    if (will && !isOwnTopic(will.topic, identity, limits)) {
      tell(identity, 'foreign-will');
      return 'not-authorized';
    }
    // Only the excess is refused and reported: the device gets in as often as it may.
    if (!registry.takeConnect(identity)) {
      noticeLimit(ports, registry, identity, 'too-many-connects');
      tell(identity, 'too-many-connects');
      return 'reconnects';
    }
    const limit = ports.maxConnectionsOf?.(identity.accountId) ?? Infinity;
    if (!registry.mayConnect(connection, identity, limit)) {
      noticeLimit(ports, registry, identity, 'too-many-connections');
      tell(identity, 'too-many-connections');
      return 'connections';
    }
    admit(connection, identity);
    return null;
  }

  function admit(connection: Connection, identity: DeviceIdentity): void {
    if (connection.stage === 'closed' || connection.ending !== null) return;
    registry.admit(connection, identity);
    const { clientId, id } = connection;
    if (clientId !== '')
      ports.bus.publish('session', { uuid: identity.uuid, clientId, connection: id });
  }

  function authenticate(
    client: Client,
    username: string | undefined,
    password: Buffer | undefined,
    done: Done,
  ): void {
    const connection = findConnection(client);
    if (!connection) return done(null, false);
    if (username === undefined || password === undefined)
      return refuse(connection, 'not-authorized', done);
    const { address } = connection.entry;
    const credentials = { username, password: password.toString(), address };
    connection.credentials = credentials;
    answer(connection, credentials, done).catch((error: unknown) => {
      log.error({ event: 'login.failed', err: error }, 'An MQTT login could not be answered.');
    });
  }

  async function answer(connection: Connection, credentials: DeviceLogin, done: Done) {
    underCheck.add(connection);
    const refusal = await check(connection, credentials).catch(
      (error: unknown): ConnectionRefusal => {
        if (!isUnavailableError(error))
          log.error(
            { event: 'login.unchecked', err: error },
            'An MQTT login could not be checked; it was answered as unavailable.',
          );
        return 'unavailable';
      },
    );
    underCheck.delete(connection);
    if (refusal) return refuse(connection, refusal, done);
    const { client, v5 } = connection;
    if (client && v5) answerConnect(client, connack(welcomeOf(connection, v5)));
    done(null, true);
  }

  /** What the CONNACK tells this client. */
  function welcomeOf(
    { clientId, keepaliveMs, isWebSocket }: Connection,
    session: V5Session,
  ): Welcome {
    const keepaliveSeconds = keepaliveMs / 1_000;
    return {
      maxPacketBytes: isWebSocket ? limits.maxPacketBytes : mostMeasurementBytes(limits),
      receiveMaximum: maxUnackedMessages,
      assignedClientId: session.hasIdentifier ? null : clientId,
      keepaliveSeconds: keepaliveSeconds === session.keepaliveSeconds ? null : keepaliveSeconds,
    };
  }

  function refuse(connection: Connection, refusal: ConnectionRefusal, done: Done): void {
    connection.refusal = refusal;
    if (refusal === 'not-authorized') {
      connection.entry.refused();
      logRefused(connection.entry.address, connection.credentials?.username);
    }
    const { client, v5 } = connection;
    if (client && v5) answerConnect(client, connackRefusal(refusalCodes[refusal]));
    done(Object.assign(new Error(refusal), { returnCode: returnCodeOf(refusal) }), false);
  }

  return {
    prepare,
    authenticate,
    /** Access of this device (without one: of any device) changed: logins that are being checked are checked again. */
    doubt(uuid?: string): void {
      for (const connection of underCheck)
        // A device may write its uuid in capitals (RFC 9562 section 4); notices have it in lower case.
        if (uuid === undefined || connection.credentials?.username.toLowerCase() === uuid)
          connection.isDoubtful = true;
    },
  };
}

function returnCodeOf(refusal: ConnectionRefusal): number {
  if (refusal === 'unavailable' || refusal === 'reconnects' || refusal === 'connections')
    return serverUnavailable;
  return refusal === 'identifier' ? identifierRejected : notAuthorized;
}

function keepaliveOf(seconds: number, { maxKeepaliveSeconds }: ConnectorLimits): number {
  return seconds === 0 ? maxKeepaliveSeconds : Math.min(seconds, maxKeepaliveSeconds);
}

/** Whether the topic of a will is one that the device may publish to. [MQTT-3.3.2-2] */
function isOwnTopic(
  topic: string,
  { uuid }: DeviceIdentity,
  { maxTopicLevels }: ConnectorLimits,
): boolean {
  const levels = topic.split('/', maxTopicLevels + 1).length;
  return isBelow(topic, upPrefix(uuid)) && !/[+#]/.test(topic) && levels <= maxTopicLevels;
}
