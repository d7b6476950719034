import type { MakeLimiter } from '../accounts/limiters.ts';
import { network } from '../lib/network.ts';
import { brokerRoutes } from '../broker-hooks/routes.ts';
import { createBridgeCheck, createSecretCheck } from '../broker-hooks/broker-hooks.ts';
import { createDeviceAuthenticator } from '../devices/authenticate.ts';
import { createDeviceIdentifier } from '../devices/identify.ts';
import type { Route } from '../http/route.ts';
import { observeHooks } from '../metrics/observe.ts';
import { startLoginWatchOf } from './login-watch.ts';
import type { Shared } from './shared.ts';

/** What can be guessed in no time that anybody has. Shorter ones are taken: they may be in use. */
const advisedLength = 32;

/** What an external broker asks: only where a secret of its own says that there is one. */
export function listBrokerRoutes(shared: Shared, makeLimiter: MakeLimiter): Route[] {
  const { db, bus, keys, clock, releases, metrics } = shared;
  const isDisabled = shared.disabled.has;
  const { brokerHookSecret: secret, bridgeSecret } = shared.config;
  if (secret === null) return [];
  const log = shared.log.child({ component: 'bridge' });
  for (const [variable, value] of [
    ['BROKER_HOOK_SECRET', secret],
    ['BRIDGE_SECRET', bridgeSecret],
  ] as const)
    if (value !== null && value.length < advisedLength)
      log.warn(
        { event: 'secret.short', variable, advisedLength },
        'A secret is short enough to be guessed: make one with "openssl rand -base64 48".',
      );
  const authenticator = createDeviceAuthenticator({
    db,
    keys: keys.deviceTokens,
    secretIds: keys.secretIds,
    bus,
    clock,
    isDisabled,
    watch: startLoginWatchOf(shared),
  });
  const identifier = createDeviceIdentifier({ db, bus, isDisabled });
  releases.add('logins of hooks', () => authenticator.close());
  releases.add('devices of hooks', () => identifier.close());
  const { authenticateDevice } = authenticator;
  const { identify } = identifier;
  const onRefused = observeHooks(metrics.registry);
  const networkOf = network;
  const guessing = { makeLimiter, networkOf };
  const checkSecret = createSecretCheck({ ...guessing, secret, onRefused });
  const checkBridge = createBridgeCheck({
    ...guessing,
    secret: bridgeSecret ?? secret,
    onRefused(reason, address) {
      onRefused(reason);
      if (reason === 'bridge-wrong-password')
        log.warn(
          { event: 'broker.bridge-refused', ...(address === undefined ? {} : { address }) },
          'A client of the external broker called itself a bridge and showed a wrong password.',
        );
    },
  });
  return brokerRoutes({ checkSecret, checkBridge, authenticateDevice, identify });
}
