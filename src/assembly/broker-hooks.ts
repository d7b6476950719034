import type { MakeLimiter } from '../accounts/limiters.ts';
import { network } from '../lib/network.ts';
import { brokerRoutes } from '../broker-hooks/routes.ts';
import { createSecretCheck } from '../broker-hooks/secret.ts';
import { createDeviceAuthenticator } from '../devices/authenticate.ts';
import { createDeviceIdentifier } from '../devices/identify.ts';
import type { Route } from '../http/route.ts';
import { observeHooks } from '../metrics/observe.ts';
import { startLoginWatchOf } from './login-watch.ts';
import type { Shared } from './shared.ts';

/** What an external broker asks: only where a secret of its own says that there is one. */
export function listBrokerRoutes(shared: Shared, makeLimiter: MakeLimiter): Route[] {
  const { db, bus, keys, clock, releases, metrics } = shared;
  const isDisabled = shared.disabled.has;
  const secret = shared.config.brokerHookSecret;
  if (secret === null) return [];
  const authenticator = createDeviceAuthenticator({
    db,
    keys: keys.deviceTokens,
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
  const checkSecret = createSecretCheck({ secret, makeLimiter, networkOf, onRefused });
  return brokerRoutes({ checkSecret, secret, authenticateDevice, identify });
}
