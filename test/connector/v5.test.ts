// The connector's tests once more, in MQTT 5. Those that load the machine: v5.long.test.ts.
import { afterAll, beforeAll, describe } from 'vitest';
import { wire } from './harness.ts';

beforeAll(() => void (wire.version = 5));
afterAll(() => void (wire.version = 4));

// Under another name, as each of them also runs by itself.
describe('access', async () => void (await import('./access.test.ts?v5')));
describe('accounts', async () => void (await import('./accounts.test.ts?v5')));
describe('acknowledging', async () => void (await import('./acknowledging.test.ts?v5')));
describe('connecting', async () => void (await import('./connecting.test.ts?v5')));
describe('filters', async () => void (await import('./filters.test.ts?v5')));
describe('holding', async () => void (await import('./holding.test.ts?v5')));
describe('limits', async () => void (await import('./limits.test.ts?v5')));
describe('pushing', async () => void (await import('./pushing.test.ts?v5')));
describe('room', async () => void (await import('./room.test.ts?v5')));
describe('topics', async () => void (await import('./topics.test.ts?v5')));
