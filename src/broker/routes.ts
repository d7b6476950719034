import { createHash, timingSafeEqual } from 'node:crypto';
import type { DeviceIdentity } from '../core/uplink.ts';
import { DomainError } from '../errors.ts';
import { defineRoute } from '../http/route.ts';
import type { RequestInfo, Route } from '../http/route.ts';
import { mayBridge, mayDevice, rulesOfBridge, rulesOfDevice, wishOf } from './authorize.ts';
import { AuthenticateBody, AuthorizeBody, Verdict } from './schema.ts';
import type { Rule } from './schema.ts';

export type BrokerRouteDeps = {
  /** What the broker shows here, and a bridge there. */
  secret: string;
  authenticateDevice: (credentials: {
    username: string;
    password: string;
  }) => Promise<DeviceIdentity | null>;
  /** The device with this uuid; null when there is none. */
  identify: (uuid: string) => Promise<DeviceIdentity | null>;
};

/**
 * The names that bridges connect to the broker with; their password is the secret. Each has its
 * own, as the broker makes the name the session's.
 */
const isBridge = (username: string) => /^sensorium-bridge(-\d+)?$/.test(username);

const tag = 'Broker';

/**
 * An external MQTT broker asks who may connect and do what. Answered 200 either way, in the words of
 * EMQX's HTTP authenticator and authorizer and of mosquitto-go-auth; 401 to whoever is no broker.
 */
export function brokerRoutes(deps: BrokerRouteDeps): Route[] {
  return [authenticate(deps), authorize(deps)];
}

function authenticate({ secret, authenticateDevice }: BrokerRouteDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/connector/authenticate',
    summary: 'Ask whether a client of an external broker may connect',
    tag,
    hidden: true,
    auth: 'none',
    body: AuthenticateBody,
    response: Verdict,
    errors: [401],
    handler: async ({ body, request }) => {
      requireSecret(request, secret);
      if (isBridge(body.username))
        return isSame(body.password, secret) ? allowed(rulesOfBridge) : denied;
      const device = await authenticateDevice(body);
      return device ? allowed(rulesOfDevice(device.uuid)) : denied;
    },
  });
}

function authorize({ secret, identify }: BrokerRouteDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/connector/authorize',
    summary: 'Ask what a client of an external broker may do',
    tag,
    hidden: true,
    auth: 'none',
    body: AuthorizeBody,
    response: Verdict,
    errors: [401],
    handler: async ({ body, request }) => {
      requireSecret(request, secret);
      const wish = wishOf(body);
      if (wish === null) return denied;
      if (isBridge(body.username)) return mayBridge(wish, body.topic) ? allowed() : denied;
      const uuid = body.username.toLowerCase();
      const may = mayDevice(uuid, wish, body.topic) && (await identify(uuid)) !== null;
      return may ? allowed() : denied;
    },
  });
}

const denied: Verdict = { result: 'deny', is_superuser: false, ok: false, error: 'not authorized' };

const allowed = (acl?: Rule[]): Verdict => ({
  result: 'allow',
  is_superuser: false,
  ok: true,
  error: '',
  ...(acl ? { acl } : {}),
});

/** As a bearer token, or as the password of RFC 7617 for brokers that can only send a URL. */
function requireSecret(request: RequestInfo, secret: string): void {
  const [scheme = '', shown = ''] = request.header('authorization').split(/ +/, 2);
  if (/^bearer$/i.test(scheme) && isSame(shown, secret)) return;
  if (/^basic$/i.test(scheme)) {
    const pair = Buffer.from(shown, 'base64').toString();
    if (isSame(pair.slice(pair.indexOf(':') + 1), secret)) return;
  }
  throw new DomainError('unauthenticated', 'The secret of the broker is needed.');
}

/** In constant time, whatever the lengths. */
function isSame(shown: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(shown), digest(secret));
}
