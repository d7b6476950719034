import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { createOpenApi } from '../../src/http/openapi.ts';
import { version } from '../../src/version.ts';
import { type TestService, testService, withConsole } from '../journeys/service.ts';
import { startMailServer, type MailServer } from '../support/smtp.ts';
import { fetchOperations, findDeviations, type Operation } from './document.ts';
import { buildWorld, exampleOf, send, type World } from './world.ts';

const operations = Object.entries(
  createOpenApi(listDocumentedRoutes(), version).paths ?? {},
).flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`));

describe('section 4, every operation', () => {
  let service: TestService;
  let served: Map<string, Operation>;
  let mail: MailServer;
  beforeAll(async () => {
    mail = await startMailServer();
    service = await testService({ SMTP_URL: mail.url }, { change: withConsole });
    served = new Map((await fetchOperations(service.url)).map((each) => [each.name, each]));
  });
  afterAll(async () => {
    await service?.close();
    await mail?.close();
  });

  /** The token, which is otherwise only in a mail. */
  async function findResetToken(email: string): Promise<string> {
    const request = { method: 'POST', path: '/v2/accounts/password/forgotten', token: null };
    expect(await send(service.url, { ...request, body: { email } })).toMatchObject({ status: 200 });
    return /\/reset\?token=([\w-]+)/.exec((await mail.mailTo(email)).text)?.[1] ?? '';
  }

  test('every linted operation is served, and every served one is linted', () => {
    expect([...served.keys()].toSorted()).toEqual(operations.toSorted());
    expect(operations.length).toBeGreaterThan(30);
  });

  /** What only reads leaves its world as it was. */
  let readOnly: Promise<World> | undefined;
  const worldFor = (name: string) =>
    name.startsWith('get ') ? (readOnly ??= buildWorld(service.url)) : buildWorld(service.url);

  test.each(operations)('%s: its example is answered 200, as the document says', async (name) => {
    const operation = served.get(name) as Operation;
    const world = await worldFor(name);
    // A ticket is valid for a minute, and a busy machine takes longer for the operations before.
    if (name === 'get /v2/streams') world.streamUrl = (await buildWorld(service.url)).streamUrl;
    if (name === 'post /v2/accounts/password/reset')
      world.resetToken = await findResetToken(world.email);
    const answer = await send(service.url, exampleOf(operation, world));
    expect(answer).toMatchObject({ status: 200 });
    expect(findDeviations(operation, answer)).toEqual([]);
    // An example of the reference should not look like a mistake.
    const [first = ''] = answer.contentType.includes('ndjson')
      ? answer.text.split('\n')
      : [answer.text];
    if (operation.body) expect(JSON.parse(first)).not.toHaveProperty('warnings.0');
  });

  test('the document includes the refusals of API keys', async () => {
    const world = await buildWorld(service.url);
    const body = { name: 'alarms alone', scopes: ['alarms:write'] };
    const path = '/v2/accounts/keys';
    const made = await send(service.url, { method: 'POST', path, token: world.token, body });
    const { key } = JSON.parse(made.text) as { key: string };
    const statuses: number[] = [];
    for (const operation of served.values()) {
      const request = exampleOf(operation, world);
      if (request.token === null) continue;
      const answer = await send(service.url, { ...request, token: key });
      expect(findDeviations(operation, answer)).toEqual([]);
      statuses.push(answer.status);
    }
    expect(statuses.filter((status) => status === 403).length).toBeGreaterThan(20);
  });

  test('a deviation from the document would be found', () => {
    const operation = served.get('get /v2/accounts') as Operation;
    const contentType = 'application/json';
    const good = {
      timestamp: 1,
      email: 'a@example.com',
      name: null,
      timeZone: 'UTC',
      language: 'en',
    };
    const deviations = (status: number, body: unknown) =>
      findDeviations(operation, { status, contentType, text: JSON.stringify(body) });
    expect(deviations(200, good)).toEqual([]);
    expect(deviations(200, { ...good, timestamp: 'now' })).toHaveLength(1);
    expect(deviations(200, { ...good, email: undefined })).toHaveLength(1);
    expect(deviations(200, { ...good, passwordHash: 'x' })).toHaveLength(1);
    expect(deviations(204, good)).toHaveLength(1);
    expect(deviations(500, good)).not.toEqual([]);
  });
});
