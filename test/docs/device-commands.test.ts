import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configuration, openApp, type App, type Registration } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { blocksOf, getSection } from './readme.ts';

const run = promisify(execFile);

describe('docs/commands.md', () => {
  let service: TestService;
  let app: App;
  beforeAll(async () => {
    service = await testService();
    app = await openApp(service.url);
  });
  afterAll(() => service.close());

  it('begins with what can be typed', async () => {
    const device = await app.call<Registration>('POST', '/v2/devices', configuration);
    const scopes = ['commands:read', 'commands:write'];
    const made = { name: 'commands', scopes };
    const { key } = await app.call<{ key: string }>('POST', '/v2/accounts/keys', made);
    const variables = {
      URL: service.url,
      AUTH: `Authorization: Bearer ${key}`,
      UUID: device.deviceAuthUuid,
      KEY: device.deviceAuthToken,
    };
    const type = async (text: string | undefined, more: Record<string, string> = {}) => {
      const env = { ...process.env, ...variables, ...more };
      const { stdout } = await run('sh', ['-c', (text ?? '').replaceAll('curl ', 'curl -s ')], {
        env,
      });
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const section = getSection('Type this', 'docs/commands.md');
    const [give, ask, answer] = blocksOf(section, 'sh');
    const shown = blocksOf(section, 'text').map((text) => text.replaceAll(/, …/g, ''));
    const given = type(give);
    const asked = await type(ask);
    const [example] = (JSON.parse(shown[0] ?? '') as { messages: object[] }).messages;
    const [message] = asked.messages as { payload: { commandId: string } }[];
    const commandId = message?.payload.commandId ?? '';
    const changing = { commandId: 0, sentTs: 0, expiresTs: 0 };
    const stable = (one: unknown) => {
      const { topic, payload } = one as { topic: string; payload: object };
      return { topic, payload: { ...payload, ...changing } };
    };
    expect(stable(message)).toEqual(stable(example));
    await type(answer, { ID: commandId });
    const { state, result } = JSON.parse(shown[1] ?? '') as Record<string, unknown>;
    expect(await given).toMatchObject({ commandId, state, result, reason: 'the pump is dry' });
  });
});
