import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../api-keys/open-key.ts';
import { ask, type Answer } from '../idempotency/repeat.ts';
import { configuration, type App, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { openAccount, openStream } from '../streams/readers.ts';
import { databaseKinds } from '../support/database.ts';

const single = '/v2/devices';
const batch = '/v2/devices/batch';
const labelled = (...labels: unknown[]) => ({ ...configuration, labels });
const pathsOf = ({ body }: Answer) =>
  (body['errors'] as { path: string }[]).map(({ path }) => path);
const many = (count: number) => Array.from({ length: count }, (_, n) => `label ${n}`);

/** The labels of each device, in the order of registration. */
async function listLabels(app: App, query = ''): Promise<string[][]> {
  const { devices } = await app.call<{ devices: { labels: string[] }[] }>('GET', single + query);
  return devices.map(({ labels }) => labels);
}

describe.each(databaseKinds)('labels of a registration, on %s', (kind) => {
  let service: TestService;
  beforeAll(async () => {
    service = await testService({}, { kind });
  });
  afterAll(() => service?.close());

  const given = async () => {
    const { app, token } = await openAccount(service.url);
    const register = (path: string, body: unknown, key?: string) =>
      ask(service.url, { path, token, body, ...(key === undefined ? {} : { key }) });
    return { app, token, register };
  };

  test('belong to the device from the beginning, unchanged', async () => {
    const { app, register } = await given();
    const odd = ['{"a,b"}', "it's\\", 'Keller 🧊', 'null'];
    await register(single, labelled(...odd));
    await register(single, configuration);
    // These share statements.
    await Promise.all(many(20).map((label) => register(single, labelled(label))));
    const devices = [labelled(...many(20)), configuration, labelled('cellar', 'freezer')];
    await register(batch, { devices });
    const labels = await listLabels(app);
    expect(labels.slice(0, 2)).toEqual([odd, []]);
    expect(labels.slice(2, 22).flat().toSorted()).toEqual(many(20).toSorted());
    expect(labels.slice(22)).toEqual([many(20), [], ['cellar', 'freezer']]);
    expect(await listLabels(app, '?label=freezer')).toEqual([['cellar', 'freezer']]);
  });

  test('are neither part of its configuration nor an unknown member', async () => {
    const { app, register } = await given();
    const { status, body } = await register(`${single}?strict=true`, labelled('cellar'));
    expect([status, body['warnings']]).toEqual([200, undefined]);
    const at = `${single}/${String(body['deviceAuthUuid'])}/configuration`;
    expect(await app.call('GET', at)).not.toHaveProperty('labels');
  });

  test('are registered once, however often the request is repeated', async () => {
    const { app, register } = await given();
    for (const [path, body] of [
      [single, labelled('one')],
      [batch, { devices: [labelled('two')] }],
    ] as const) {
      const first = await register(path, body, path);
      expect(first.status, first.text).toBe(200);
      expect(await register(path, body, path)).toEqual(first);
    }
    expect((await register(single, labelled('other'), single)).status).toBe(422);
    expect(await listLabels(app)).toEqual([['one'], ['two']]);
  });

  test('that break a rule register nothing, just as they label nothing', async () => {
    const { app, token, register } = await given();
    const { deviceAuthUuid: uuid } = await app.call<Registration>('POST', single, configuration);
    const replace = (body: unknown) =>
      ask(service.url, { method: 'PUT', path: `${single}/${uuid}/labels`, token, body });
    for (const [labels, path] of [
      [many(21), '/labels'],
      [['a', 'a'], '/labels'],
      [[''], '/labels/0'],
      [['b', 'x'.repeat(65)], '/labels/1'],
      [['a\0b'], '/labels/0'],
      [[7], '/labels/0'],
    ] as const) {
      const said = await replace({ labels });
      expect([said.status, pathsOf(said)]).toEqual([400, [path]]);
      const one = await register(single, labelled(...labels));
      expect([one.status, one.body['errors']]).toEqual([400, said.body['errors']]);
      const some = await register(batch, { devices: [configuration, labelled(...labels)] });
      expect([some.status, pathsOf(some)]).toEqual([400, [`/devices/1${path}`]]);
    }
    expect(await listLabels(app)).toEqual([[]]);
  });

  test('reach streams of a label, and keys that are restricted to one', async () => {
    const { app, token, register } = await given();
    const scopes = ['data:read', 'devices:read', 'devices:write'];
    const { key } = await makeKey(app, { scopes, labels: ['cellar'] });
    const path = '/v2/measurements/stream';
    const streams = await Promise.all([
      openStream(service.url + path, key),
      openStream(`${service.url}${path}?label=cellar`, token),
    ]);
    const attic = await register(single, labelled('attic'));
    const cellar = await register(single, labelled('cellar'));
    const some = await register(batch, { devices: [configuration, labelled('cellar')] });
    const [none, another] = some.body['devices'] as Registration[];
    const registered = [attic.body, none, cellar.body, another] as Registration[];
    const devices = await Promise.all(registered.map(connectDevice));
    const uuids = devices.map(({ uuid }) => uuid);
    const told = () =>
      streams.map((stream) => {
        const from = stream.named('measurement').map(({ deviceAuthUuid }) => deviceAuthUuid);
        return uuids.map((uuid) => from.includes(uuid));
      });
    const wanted = [false, false, true, true];
    // Soon after the registration, and not only when rights are checked again (15 s).
    await expect
      .poll(
        async () => {
          for (const device of devices)
            await device.publish('up/measurements', { sId: '0x02', val: 1 });
          return told();
        },
        { timeout: 60_000 },
      )
      .toEqual([wanted, wanted]);
    expect(
      await ask(service.url, { path: single, token: key, body: labelled('cellar') }),
    ).toMatchObject({ status: 403 });
    for (const stream of streams) stream.close();
    await Promise.all(devices.map((device) => device.end()));
  });
});
