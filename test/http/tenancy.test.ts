import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { configuration, thresholdPurpose } from '../journeys/app.ts';
import { type TestService, testService, withConsole } from '../journeys/service.ts';
import { fetchOperations, type Operation } from './document.ts';
import { type Answered, buildWorld, exampleOf, type Request, send, type World } from './world.ts';

const routes = listDocumentedRoutes();
const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
const withParameters = routes.filter(({ path }) => path.includes('{')).map(nameOf);
const secured = routes.filter(({ auth }) => auth !== 'none').map(nameOf);
const lists = routes
  .filter(({ method, path, auth, streams }) => {
    return method === 'get' && auth === 'account' && !path.includes('{') && !streams;
  })
  .map(nameOf);

describe('two accounts', () => {
  let service: TestService;
  let mine: World;
  let theirs: World;
  let operations: Map<string, Operation>;
  let before: string[];
  beforeAll(async () => {
    service = await testService({}, { change: withConsole });
    operations = new Map((await fetchOperations(service.url)).map((each) => [each.name, each]));
    [mine, theirs] = await Promise.all([buildWorld(service.url), buildWorld(service.url)]);
    before = await everythingOf(theirs);
  });
  afterAll(() => service.close());

  const get = (name: string) => operations.get(name) as Operation;
  const ask = (request: Request) => send(service.url, request);
  const nobody = () => crypto.randomUUID();

  /** An answer without the members that differ between any two answers. */
  function comparable({ status, headers, text }: Answered) {
    const names = [...headers.keys()].filter((name) => name !== 'date');
    const { timestamp: _t, requestId: _r, ...body } = JSON.parse(text) as Record<string, unknown>;
    return { status, names, body };
  }
  /** Everything that the owner can read, without the times of reading. */
  async function everythingOf(world: World): Promise<string[]> {
    const reads = [...operations.values()].filter(
      ({ method, responses, secured: isSecured }) =>
        method === 'GET' && isSecured && responses['200']?.content?.['application/json'],
    );
    const answers = await Promise.all(reads.map((operation) => ask(exampleOf(operation, world))));
    // What its device did is counted a moment later.
    const varying =
      /"(timestamp|lastUsedTs|lastSeenTs|connected|presence)":(\d+|null|true|false|"\w+"),?/g;
    const counted = /\{"quota":"(connections|eventsPerDay|storedBytes)"[^}]*\},?/g;
    return answers.map(({ text }) => text.replaceAll(varying, '').replaceAll(counted, ''));
  }

  test.each(withParameters)(
    '%s does not distinguish their identifiers from unknown ones',
    async (name) => {
      const operation = get(name);
      const someone = await ask(exampleOf(operation, mine, theirs.ids));
      const ids = {
        deviceAuthUuid: nobody(),
        purposeUuid: nobody(),
        pId: nobody(),
        id: nobody(),
        alarmId: '999999999',
        keyId: nobody(),
        tokenId: nobody().replaceAll('-', ''),
        jobId: nobody(),
        commandId: nobody(),
        backtestId: nobody(),
      };
      const none = await ask(exampleOf(operation, mine, ids));
      expect(someone.status).toBe(404);
      expect(comparable(someone)).toEqual(comparable(none));
    },
  );

  test.each(['deviceAuthUuids', 'purposeUuids'])(
    'post /v2/devices/profile installs nothing with their %s',
    async (field) => {
      const install = (uuid: string) =>
        ask({
          method: 'POST',
          path: '/v2/devices/profile',
          token: mine.token,
          body: {
            deviceAuthUuids: [mine.ids.deviceAuthUuid],
            purposeUuids: [mine.ids.purposeUuid],
            [field]: [
              field === 'purposeUuids' ? mine.ids.purposeUuid : mine.ids.deviceAuthUuid,
              uuid,
            ],
          },
        });
      const own = await everythingOf(mine);
      const [someone, none] = [
        await install(
          field === 'purposeUuids' ? theirs.ids.purposeUuid : theirs.ids.deviceAuthUuid,
        ),
        await install(nobody()),
      ];
      expect(someone.status).toBe(404);
      expect(comparable(someone)).toEqual(comparable(none));
      expect(await everythingOf(mine)).toEqual(own);
    },
  );

  test.each(lists)('%s shows nothing of theirs', async (name) => {
    const { status, text } = await ask(exampleOf(get(name), mine));
    expect(status).toBe(200);
    // The number is too short to search for.
    const { alarmId: _number, ...ids } = theirs.ids;
    for (const id of [...Object.values(ids), theirs.email, theirs.deviceToken]) {
      expect(text).not.toContain(id);
    }
  });

  test.each(secured)(
    '%s answers 401 without a token, and for a device token or a made-up one',
    async (name) => {
      const example = exampleOf(get(name), mine);
      // A ticket opens its stream whatever else is sent.
      const request = { ...example, path: example.path.replace(/ticket=[\w-]+/, 'ticket=none') };
      for (const token of [null, mine.deviceToken, 'made.up.token', `${mine.token}x`]) {
        const answer = await ask({ ...request, token });
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      }
    },
  );

  test('none of this changed anything of theirs', async () => {
    expect(await everythingOf(theirs)).toEqual(before);
    // A change would have been noticed: one of their own changes what they read.
    const path = `/v2/purposes/${theirs.ids.purposeUuid}`;
    const { token } = theirs;
    await ask({ method: 'PUT', path, token, body: thresholdPurpose(4, 4) });
    await ask({ method: 'POST', path: '/v2/devices', token, body: configuration });
    expect(await everythingOf(theirs)).not.toEqual(before);
  });
});
