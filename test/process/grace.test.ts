import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { readProjectFile } from '../docs/readme.ts';

type Service = {
  command?: string[];
  environment?: Record<string, unknown>;
  stop_grace_period?: string;
};

/** The services that run this program. */
function listServices(file: string): Service[] {
  const { services } = load(readProjectFile(file)) as { services: Record<string, Service> };
  return Object.values(services).filter(
    ({ environment }) => environment && 'SECRET' in environment,
  );
}

const milliseconds = (seconds: string | undefined) => Number(seconds?.replace(/s$/, '')) * 1_000;

describe.each(['docker-compose.yml', 'docker-compose.cluster.yml'])('%s', (file) => {
  it('gives each process longer to stop than it takes at most', () => {
    const services = listServices(file);
    expect(services.length).toBeGreaterThan(0);
    for (const { environment, stop_grace_period: grace } of services) {
      const delayMs = Number(environment?.['DRAIN_DELAY_MS']);
      const totalMs = Number(environment?.['STOP_TIMEOUT_MS']);
      expect(delayMs).toBe(5_000);
      // Work under way has as long as before the delay was part of it.
      expect(totalMs).toBeGreaterThanOrEqual(delayMs + 10_000);
      expect(milliseconds(grace)).toBeGreaterThan(totalMs + 1_000);
    }
  });
});

/** The time from being asked to stop to the exit, in ms. */
const stopTimeoutWith = async (variables: Record<string, string>) =>
  (await loadConfig(variables)).stopTimeoutMs;

it('by default a process stops before Docker, which waits 10 s, kills it', async () => {
  const totalMs = await stopTimeoutWith({});
  expect(totalMs).toBeLessThanOrEqual(9_000);
  expect(await stopTimeoutWith({ DRAIN_DELAY_MS: '4000' })).toBe(totalMs);
});

it('a stop timeout that the delay uses up is refused, with the expected value', async () => {
  const delay = { DRAIN_DELAY_MS: '5000' };
  await expect(stopTimeoutWith({ ...delay, STOP_TIMEOUT_MS: '6000' })).rejects.toMatchObject({
    lines: [expect.stringMatching(/^STOP_TIMEOUT_MS: expected 7000/)],
  });
  expect(await stopTimeoutWith({ ...delay, STOP_TIMEOUT_MS: '7000' })).toBe(7_000);
  expect(await stopTimeoutWith(delay)).toBeGreaterThanOrEqual(7_000);
});

it('HAProxy notices that a process is not ready well before that process drains', () => {
  const config = readProjectFile('config/haproxy.cfg');
  const number = (name: string) => {
    const [, value = '', unit] = new RegExp(`\\b${name} (\\d+)(m?s)?\\b`).exec(config) ?? [];
    return Number(value) * (unit === 's' ? 1_000 : 1);
  };
  const seenMs = number('check inter') + (number('fall') - 1) * number('fastinter');
  expect(seenMs).toBeGreaterThan(0);
  for (const { environment } of listServices('docker-compose.cluster.yml'))
    expect(Number(environment?.['DRAIN_DELAY_MS'])).toBeGreaterThan(2 * seenMs);
  const connector = listServices('docker-compose.cluster.yml').find(({ command }) =>
    command?.includes('connector'),
  );
  expect(connector?.environment?.['HEALTH_PORT']).toBe(number('send-proxy-v2 port'));
});
