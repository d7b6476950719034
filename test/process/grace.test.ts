import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { drainTimeoutMs } from '../../src/service.ts';
import { readProjectFile } from '../docs/readme.ts';

type Service = {
  command?: string[];
  environment?: Record<string, unknown>;
  stop_grace_period?: string;
};

/** Those that run this program. */
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
      expect(delayMs).toBe(5_000);
      expect(milliseconds(grace)).toBeGreaterThan(delayMs + drainTimeoutMs + 1_000);
    }
  });
});

it('HAProxy sees that a process is not ready well before that one drains', () => {
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
