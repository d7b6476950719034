// The connector's tests once more, in MQTT 5. Those that load the machine: v5.long.test.ts.
import { afterAll, beforeAll } from 'vitest';
import { wire } from './harness.ts';

beforeAll(() => void (wire.version = 5));
afterAll(() => void (wire.version = 4));

// Under another name, as each of them also runs by itself.
await import('./access.test.ts?v5');
await import('./accounts.test.ts?v5');
await import('./acknowledging.test.ts?v5');
await import('./connecting.test.ts?v5');
await import('./holding.test.ts?v5');
await import('./limits.test.ts?v5');
await import('./pushing.test.ts?v5');
await import('./room.test.ts?v5');
await import('./topics.test.ts?v5');
await import('./unknown-members.test.ts?v5');
await import('./uplink.test.ts?v5');
