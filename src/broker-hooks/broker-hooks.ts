import { createHash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RateLimiterAbstract } from 'rate-limiter-flexible';
import { z } from 'zod';
import {
  type DeviceIdentity,
  downPrefix,
  findMatchedTopics,
  isBelow,
  upPrefix,
} from '../contract/uplink.ts';
import { DomainError } from '../errors.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';

type BrokerRouteDeps = {
  /** Checks the caller's secret. */
  checkSecret: CheckSecret;
  /** Checks the password that a bridge sent to the broker. */
  checkBridge: CheckBridge;
  authenticateDevice: (credentials: {
    username: string;
    password: string;
    address?: string | undefined;
  }) => Promise<DeviceIdentity | null>;
  /** The device with this uuid; null if there is none. */
  identify: (uuid: string) => Promise<DeviceIdentity | null>;
};

/**
 * The user names of bridges; their password is a secret. Each bridge has its own, because the broker uses the user name
 * as the client identifier of the session.
 */
const isBridge = (username: string) => /^sensorium-bridge(-\d+)?$/.test(username);

const tag = 'Broker';

/**
 * Routes by which an external MQTT broker asks who may connect and do what. Both verdicts are answered 200, in the
 * formats of EMQX's HTTP authenticator and authorizer and of mosquitto-go-auth, because EMQX takes 4xx as "ask the
 * next". With `?deny=403` a denial is 403, for brokers that look only at the status. A caller without the secret gets
 * 401.
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

/** Throws `forbidden` if the broker asked for a status. */
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

/** The body that EMQX's HTTP authenticator, with the template in config/, and mosquitto-go-auth send. */
const AuthenticateBody = z.object({
  username: z.string().default(''),
  password: z.string().default(''),
  /** The client's address, for the list of refused logins. EMQX's name for it. */
  peerhost: z.string().max(64).optional().catch(undefined),
});

/** How a denial is answered: in the body, or by the status. */
const HookQuery = z.object({ deny: z.enum(['200', '403']).default('200') });
type HookQuery = z.infer<typeof HookQuery>;

/** EMQX sends `action`. mosquitto-go-auth sends `acc`: 1 read, 2 write, 3 both, 4 subscribe. */
const AuthorizeBody = z.object({
  username: z.string().default(''),
  topic: z.string(),
  action: z.enum(['publish', 'subscribe']).optional(),
  acc: z.int().min(1).max(4).optional(),
});
type AuthorizeBody = z.infer<typeof AuthorizeBody>;

const Rule = z.object({
  permission: z.enum(['allow', 'deny']),
  action: z.enum(['publish', 'subscribe', 'all']),
  topic: z.string(),
});
type Rule = z.infer<typeof Rule>;

/** The verdict in the formats of both brokers. EMQX 5.8 keeps `acl` and asks nothing more about the connection. */
const HookVerdict = z.object({
  result: z.enum(['allow', 'deny']),
  is_superuser: z.literal(false),
  ok: z.boolean(),
  error: z.string(),
  acl: z.array(Rule).optional(),
});
type HookVerdict = z.infer<typeof HookVerdict>;

/** What a client wants to do with a topic or filter. */
type Wish = 'publish' | 'subscribe' | 'receive';

/** Null if the request names nothing that could be allowed. */
function wishOf({ action, acc }: AuthorizeBody): Wish | null {
  if (action) return action;
  if (acc === 1) return 'receive';
  if (acc === 2) return 'publish';
  return acc === 4 ? 'subscribe' : null;
}

const hasWildcard = (topic: string) => /[+#\0]/.test(topic);

/**
 * A device may publish to its own `up/` and subscribe to its own `down/`, and nothing else. Brokers compare topics
 * literally, so a filter with the uuid in capitals would never match a message.
 */
function mayDevice(uuid: string, wish: Wish, topic: string): boolean {
  if (wish === 'publish') return isBelow(topic, upPrefix(uuid)) && !hasWildcard(topic);
  if (wish === 'receive') return topic.startsWith(downPrefix(uuid));
  return topic.startsWith(downPrefix(uuid)) && findMatchedTopics(topic, downPrefix(uuid)) !== null;
}

/** A bridge may do the opposite, for all devices. */
function mayBridge(wish: Wish, topic: string): boolean {
  if (wish === 'subscribe') return /^(\$share\/[^/+#]+\/)?devices\/\+\/up\/#$/.test(topic);
  const direction = wish === 'publish' ? 'down' : 'up';
  return topic.split('/')[2] === direction && topic.startsWith('devices/') && !hasWildcard(topic);
}

/** The same as rules, for a broker that decides by itself. */
const rulesOfDevice = (uuid: string): Rule[] => [
  { permission: 'allow', action: 'publish', topic: `${upPrefix(uuid)}#` },
  { permission: 'allow', action: 'subscribe', topic: `${downPrefix(uuid)}#` },
  { permission: 'deny', action: 'all', topic: '#' },
];

const rulesOfBridge: Rule[] = [
  { permission: 'allow', action: 'publish', topic: 'devices/+/down/#' },
  { permission: 'allow', action: 'subscribe', topic: 'devices/+/up/#' },
  { permission: 'deny', action: 'all', topic: '#' },
];

/** Why a caller or a bridge was refused, for the metrics. */
type HookRefusal = 'wrong-secret' | 'throttled' | 'bridge-wrong-password' | 'bridge-throttled';

type GuessDeps = {
  secret: string;
  /** A counter of at most so many attempts in a window, for all processes where they share one. */
  makeLimiter: (
    name: string,
    limit: { attempts: number; windowSeconds: number },
  ) => RateLimiterAbstract;
  /** What counts as one address. */
  networkOf: (address: string) => string;
};

/** Whether a secret is right. After too many wrong ones from its network it is not checked: for how many seconds. */
type Guess = 'right' | 'wrong' | { retryAfterSeconds: number };

/** This many wrong secrets from one network in `windowSeconds`; then none is checked. */
const maxWrong = 30;
const windowSeconds = 60;
const maxKnown = 10_000;

/** Slows down guessing. A network that sent the right secret is always heard: no neighbour can shut it out. */
function createGuesses(name: string, { secret, makeLimiter, networkOf }: GuessDeps) {
  const wrong = makeLimiter(name, { attempts: maxWrong, windowSeconds });
  const known = new LRUCache<string, true>({ max: maxKnown });
  return async (address: string, isRight: (secret: string) => boolean): Promise<Guess> => {
    const from = networkOf(address);
    if (!known.has(from)) {
      const counted = await wrong.get(from);
      if (counted !== null && counted.consumedPoints >= maxWrong)
        return { retryAfterSeconds: Math.ceil(counted.msBeforeNext / 1_000) };
    }
    if (isRight(secret)) {
      known.set(from, true);
      return 'right';
    }
    await wrong.penalty(from);
    return 'wrong';
  };
}

export type SecretCheckDeps = GuessDeps & {
  /** Called for each request without the secret. */
  onRefused: (reason: HookRefusal) => void;
};

/** Resolves if the caller knows the secret. Throws `unauthenticated` or `too-many-requests`. */
type CheckSecret = (request: RequestInfo) => Promise<void>;

export function createSecretCheck(deps: SecretCheckDeps): CheckSecret {
  const guess = createGuesses('hook-address', deps);
  return async (request) => {
    const guessed = await guess(request.address, (secret) => shows(request, secret));
    if (guessed === 'right') return;
    deps.onRefused(guessed === 'wrong' ? 'wrong-secret' : 'throttled');
    if (guessed === 'wrong')
      throw new DomainError('unauthenticated', "The broker's secret is required.");
    throw new DomainError(
      'too-many-requests',
      'Too many wrong secrets: wait before trying again.',
      guessed,
    );
  };
}

type BridgeCheckDeps = GuessDeps & {
  /** Called for each bridge that is refused. `address`: the client's, if the broker sent it. */
  onRefused: (reason: HookRefusal, address: string | undefined) => void;
};

/** Whether a client with a bridge's user name is one. */
type CheckBridge = (password: string, address: string | undefined) => Promise<boolean>;

/**
 * Anybody who reaches the broker can guess the bridges' password. If the broker sends no address, nobody is slowed
 * down, because that would slow down all bridges.
 */
export function createBridgeCheck(deps: BridgeCheckDeps): CheckBridge {
  const guess = createGuesses('hook-bridge', deps);
  return async (password, address) => {
    const isRight = (secret: string) => isSameSecret(password, secret);
    const guessed =
      address === undefined
        ? isRight(deps.secret)
          ? 'right'
          : 'wrong'
        : await guess(address, isRight);
    if (guessed === 'right') return true;
    deps.onRefused(guessed === 'wrong' ? 'bridge-wrong-password' : 'bridge-throttled', address);
    return false;
  };
}

/** Whether the request has the secret: as a bearer token, or (brokers that send only a URL) as RFC 7617's password. */
function shows(request: RequestInfo, secret: string): boolean {
  const [scheme = '', shown = ''] = request.header('authorization').split(/ +/, 2);
  if (/^bearer$/i.test(scheme)) return isSameSecret(shown, secret);
  if (!/^basic$/i.test(scheme)) return false;
  const pair = Buffer.from(shown, 'base64').toString();
  return isSameSecret(pair.slice(pair.indexOf(':') + 1), secret);
}

/** In constant time, whatever the lengths. */
function isSameSecret(shown: string, secret: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(shown), digest(secret));
}
