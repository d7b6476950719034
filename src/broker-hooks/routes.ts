import type { DeviceIdentity } from '../contract/uplink.ts';
import { DomainError } from '../errors.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { mayBridge, mayDevice, rulesOfBridge, rulesOfDevice, wishOf } from './authorize.ts';
import { AuthenticateBody, AuthorizeBody, HookQuery, HookVerdict } from './schema.ts';
import type { Rule } from './schema.ts';
import type { CheckBridge, CheckSecret } from './broker-hooks.ts';

export type BrokerRouteDeps = {
  /** Checks the secret of the caller. */
  checkSecret: CheckSecret;
  /** Checks what a bridge shows to the broker. */
  checkBridge: CheckBridge;
  authenticateDevice: (credentials: {
    username: string;
    password: string;
    address?: string | undefined;
  }) => Promise<DeviceIdentity | null>;
  /** The device with this uuid; null when there is none. */
  identify: (uuid: string) => Promise<DeviceIdentity | null>;
};

/**
 * The names that bridges connect to the broker with; their password is a secret. Each has its
 * own, as the broker makes the name the session's.
 */
const isBridge = (username: string) => /^sensorium-bridge(-\d+)?$/.test(username);

const tag = 'Broker';

/**
 * An external MQTT broker asks who may connect and do what. Answered 200 either way, in the words of
 * EMQX's HTTP authenticator and authorizer and of mosquitto-go-auth: EMQX takes 4xx as "ask the next".
 * With `?deny=403` a denial is 403, for brokers that look at nothing but the status. 401 to a caller
 * without the secret.
 */
export function brokerRoutes(deps: BrokerRouteDeps): Route[] {
  return [authenticate(deps), authorize(deps)];
}

function authenticate({ checkSecret, checkBridge, authenticateDevice }: BrokerRouteDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/connector/authenticate',
    summary: 'Ask whether a client of an external broker may connect',
    tag,
    hidden: true,
    auth: 'none',
    admit: checkSecret,
    query: HookQuery,
    body: AuthenticateBody,
    response: HookVerdict,
    errors: [401, 403, 429],
    handler: async ({ body, query }) => {
      const { username, password, peerhost: address } = body;
      if (isBridge(username))
        return (await checkBridge(password, address)) ? allowed(rulesOfBridge) : deny(query);
      const device = await authenticateDevice({ username, password, address });
      return device ? allowed(rulesOfDevice(device.uuid)) : deny(query);
    },
  });
}

function authorize({ checkSecret, identify }: BrokerRouteDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/connector/authorize',
    summary: 'Ask what a client of an external broker may do',
    tag,
    hidden: true,
    auth: 'none',
    admit: checkSecret,
    query: HookQuery,
    body: AuthorizeBody,
    response: HookVerdict,
    errors: [401, 403, 429],
    handler: async ({ body, query }) => {
      const wish = wishOf(body);
      if (wish === null) return deny(query);
      if (isBridge(body.username)) return mayBridge(wish, body.topic) ? allowed() : deny(query);
      const uuid = body.username.toLowerCase();
      const may = mayDevice(uuid, wish, body.topic) && (await identify(uuid)) !== null;
      return may ? allowed() : deny(query);
    },
  });
}

/** Throws `forbidden` where the broker asked for a status. */
function deny({ deny: how }: HookQuery): HookVerdict {
  if (how === '403') throw new DomainError('forbidden', 'not authorized');
  return denied;
}

const denied: HookVerdict = {
  result: 'deny',
  is_superuser: false,
  ok: false,
  error: 'not authorized',
};

const allowed = (acl?: Rule[]): HookVerdict => ({
  result: 'allow',
  is_superuser: false,
  ok: true,
  error: '',
  ...(acl ? { acl } : {}),
});
