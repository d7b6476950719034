import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { StartError } from '../../src/start-error.ts';

const dir = mkdtempSync(join(tmpdir(), 'sensorium-config-'));
afterAll(() => rmSync(dir, { recursive: true }));

function file(name: string, content: unknown): string {
  const path = join(dir, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

async function refusal(variables: Record<string, string>): Promise<string[]> {
  const error = await loadConfig(variables).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StartError);
  return error instanceof StartError ? error.lines : [];
}

const secret = 'x'.repeat(32);

describe('settings', () => {
  it('use notifications.dailyQuota as quotas.messagesPerDay', async () => {
    const path = file('daily.json', { notifications: { dailyQuota: 7 } });
    expect((await loadConfig({ CONFIG_FILE: path })).quotas.messagesPerDay).toBe(7);
  });

  it('base quotas on whether registration is open, under what the file sets', async () => {
    const { quotas: open } = await loadConfig({});
    expect([open.devices, open.storedBytes]).toEqual([10_000, 20 * 2 ** 30]);
    const path = file('closed.json', {
      accounts: { openRegistration: false },
      quotas: { devices: 7 },
      quotasWhereClosed: { devices: 8, keys: 9 },
    });
    const { quotas: closed } = await loadConfig({ CONFIG_FILE: path });
    expect([closed.devices, closed.keys, closed.storedBytes]).toEqual([7, 9, 2 ** 50]);
    // What protects others stays the same.
    expect([closed.requestsPerSecond, closed.smsPerDay]).toEqual([
      open.requestsPerSecond,
      open.smsPerDay,
    ]);
  });

  it('have defaults that run everything on one machine', async () => {
    const config = await loadConfig({});
    expect(config).toMatchObject({
      role: { name: 'all' },
      httpListen: { port: 8080 },
      mqttListen: { port: 1883 },
      mqttsListen: null,
      webSocketListen: null,
      metricsListen: null,
      databaseUrl: null,
      secret: null,
      retention: { eventsDays: 365, measurementsDays: 90 },
    });
    expect(config.publicHost).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
  });

  it('can turn plain MQTT off', async () => {
    expect(await loadConfig({ MQTT_PORT: 'off' })).toMatchObject({ mqttListen: null });
    expect(await loadConfig({ MQTT_PORT: '0' })).toMatchObject({ mqttListen: { port: 0 } });
    expect(await refusal({ MQTT_PORT: 'none' })).toEqual([
      'MQTT_PORT: expected a port, 0 to 65535, or off, got "none".',
    ]);
  });

  it('make connector processes accept WebSockets', async () => {
    const variables = { MQTT_WS_PORT: '8082', MQTT_HOST: '127.0.0.1' };
    expect(await loadConfig(variables)).toMatchObject({
      webSocketListen: { host: '127.0.0.1', port: 8082 },
    });
  });

  it('count an empty variable as absent', async () => {
    expect(await loadConfig({ HTTP_PORT: '', DATABASE_URL: '' })).toMatchObject({
      httpListen: { port: 8080 },
      databaseUrl: null,
    });
  });

  it('merge a file over the defaults, member by member', async () => {
    const path = file('over.json', { retention: { eventsDays: 7 }, http: { corsOrigins: ['*'] } });
    const config = await loadConfig({ CONFIG_FILE: path });
    expect(config.retention).toEqual({ eventsDays: 7, measurementsDays: 90 });
    expect(config.http).toMatchObject({ corsOrigins: ['*'], trustedProxies: [] });
  });

  it('may be TypeScript', async () => {
    const path = file(
      'over.ts',
      'export default { retention: { measurementsDays: 3 as number } };',
    );
    const config = await loadConfig({ CONFIG_FILE: path });
    expect(config.retention.measurementsDays).toBe(3);
  });

  it('accept a bridge to an external broker', async () => {
    const bridge = {
      kind: 'bridge',
      id: 2,
      name: 'emqx',
      protocol: 'mqtts',
      host: 'mqtt.example.com',
      port: 8883,
      broker: { url: 'mqtts://10.0.0.5:8883' },
    };
    const path = file('bridge.json', { connectors: [bridge] });
    const config = await loadConfig({ CONFIG_FILE: path }, { name: 'connector', id: 2 });
    expect(config.connectors).toEqual([
      { ...bridge, broker: { ...bridge.broker, shareName: 'sensorium' } },
    ]);
  });
});

describe('wrong settings', () => {
  it('are all listed at once, one line each', async () => {
    const lines = await refusal({
      HTTP_PORT: 'eighty',
      MQTT_PORT: '70000',
      LOG_LEVEL: 'loud',
      REDIS_URL: 'http://redis',
      TLS_CERT_FILE: '/nowhere/cert.pem',
      CONFIG_FILE: file('wrong.json', { mqtt: { maxSubscriptions: 0 }, retension: {} }),
    });
    const named = lines.map(
      (line) => /([A-Z_]{3,}|retension|maxSubscriptions)/.exec(line.replaceAll(dir, ''))?.[1],
    );
    expect(new Set(named)).toEqual(
      new Set([
        'HTTP_PORT',
        'LOG_LEVEL',
        'MQTTS_PORT',
        'MQTT_PORT',
        'REDIS_URL',
        'TLS_CERT_FILE',
        'TLS_KEY_FILE',
        'maxSubscriptions',
        'retension',
      ]),
    );
    expect(lines.join()).toContain('"eighty"');
  });

  it('include a database without a secret, with how to create one', async () => {
    const [line, ...more] = await refusal({ DATABASE_URL: 'postgresql://db/x' });
    expect(line).toMatch(/^SECRET: .*openssl rand/);
    expect(more).toEqual([]);
  });

  it('never repeat a secret', async () => {
    const lines = await refusal({
      SECRET: 'hunter2',
      SECRET_PREVIOUS: 'hunter3',
      DATABASE_URL: 'mysql://me:hunter4@db/x',
    });
    expect(lines).toHaveLength(3);
    expect(lines.join()).not.toContain('hunter');
  });

  it('include a file that is missing or not JSON', async () => {
    expect(await refusal({ CONFIG_FILE: '/nowhere.json' })).toHaveLength(1);
    expect(await refusal({ CONFIG_FILE: file('broken.json', '{') })).toHaveLength(1);
  });

  it('include a connector that config/ does not name', async () => {
    await expect(loadConfig({}, { name: 'connector', id: 9 })).rejects.toThrow('--id 9');
  });

  it('include a previous secret that is too short, given twice, or in a missing file', async () => {
    const previous = file('previous', `${secret}\n`);
    const one = await loadConfig({ SECRET: secret, SECRET_PREVIOUS_FILE: previous });
    expect(one.previousSecret).toBe(secret);
    expect(await refusal({ SECRET_PREVIOUS: secret, SECRET_PREVIOUS_FILE: previous })).toEqual([
      'SECRET_PREVIOUS and SECRET_PREVIOUS_FILE: expected only one of them.',
    ]);
    expect(await refusal({ SECRET_PREVIOUS_FILE: file('short', 'x') })).toEqual([
      expect.stringMatching(/^SECRET_PREVIOUS_FILE: expected 32 bytes or more/),
    ]);
    expect(await refusal({ SECRET_PREVIOUS_FILE: '/nowhere' })).toEqual([
      expect.stringMatching(/^SECRET_PREVIOUS_FILE: cannot be read/),
    ]);
  });

  it('include two secrets at once', async () => {
    const both = { SECRET: secret, SECRET_FILE: file('secret', secret) };
    expect(await refusal(both)).toHaveLength(1);
    const config = await loadConfig({ SECRET_FILE: both.SECRET_FILE });
    expect(config.secret).toBe(secret);
  });
});
