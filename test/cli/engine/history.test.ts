import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { playHistory } from '../../../src/cli/engine/history.ts';
import { parseOptions } from '../../../src/cli/engine/options.ts';
import type { Database } from '../../../src/db/database.ts';
import { ask, openAccount } from '../../idempotency/repeat.ts';
import { configuration, type Registration } from '../../journeys/app.ts';
import { connectDevice } from '../../journeys/device.ts';
import { testService } from '../../journeys/service.ts';
import { openTestDatabase } from '../../support/database.ts';
import { runs } from '../../support/share.ts';
import { runEngine } from './run-engine.ts';

type Line = { kind: string } & Record<string, unknown>;
type Value = {
  sId: string;
  ts: number;
  val: number;
  arrived: number | null;
  nth: number | null;
};

const minuteMs = 60_000;

/** Two states, whose order depends on which of two senses comes first, and a condition on time. */
const profileOf = (limit: number) => {
  const event = (evId: number, sId: string, more: object, actions: object) => ({
    evId,
    eventLog: evId !== 2,
    causes: [{ sId, ...more }],
    actions,
  });
  return [
    {
      puId: 1,
      initStId: 1,
      states: [
        {
          stId: 1,
          events: [
            event(1, '0x01', { thresholds: { isGt: limit } }, { alarm: true }),
            event(2, '0x02', { thresholds: { isGt: 2 } }, { engine: { gotoStId: 2 } }),
          ],
        },
        {
          stId: 2,
          events: [
            event(1, '0x01', { thresholds: { isLt: 1 } }, { engine: { gotoStId: 1 } }),
            event(
              3,
              '0x02',
              { threshold: { forMs: 4 * minuteMs }, thresholds: { isGt: 0 } },
              { cloud: { sendPush: true }, keepMs: minuteMs },
            ),
          ],
        },
      ],
    },
  ];
};

describe('a backtest on an export is the same as that of the service', () => {
  let service: Awaited<ReturnType<typeof testService>>;
  let db: Database;
  let token = '';
  let folder = '';
  beforeAll(async () => {
    service = await testService();
    db = openTestDatabase(service.databaseUrl);
    token = await openAccount(service.url);
    folder = await mkdtemp(join(tmpdir(), 'history-'));
  });
  afterAll(async () => {
    await db?.close();
    await service?.close();
    await rm(folder, { recursive: true });
  });

  const get = async (path: string, accept: string) => {
    const headers = { Authorization: `Bearer ${token}`, Accept: accept };
    return (await fetch(service.url + path, { headers })).text();
  };

  async function register(): Promise<Registration> {
    const { body } = await ask(service.url, { path: '/v2/devices', token, body: configuration });
    return body as Registration;
  }

  async function store(uuid: string, values: Value[]): Promise<void> {
    for (const sId of ['0x01', '0x02']) {
      const own = values.filter((value) => value.sId === sId);
      await db.query(
        `with one as (
           insert into series (device_id, s_id) select id, $2 from device where uuid = $1
           on conflict (device_id, s_id) do update set s_id = excluded.s_id returning id
         )
         insert into measurement (series_id, ts, val, arrived, nth)
         select one.id, ms_to_timestamp(m.ts), m.val, m.arrived, m.nth
           from one, unnest($3::bigint[], $4::float8[], $5::bigint[], $6::integer[])
                as m (ts, val, arrived, nth)`,
        [
          uuid,
          sId,
          own.map(({ ts }) => ts),
          own.map(({ val }) => val),
          own.map(({ arrived }) => arrived),
          own.map(({ nth }) => nth),
        ],
      );
    }
  }

  /** What the service says, and what the command makes of an export. */
  async function both(uuids: string[], start: number, end: number, type: string) {
    const [candidate, against] = [profileOf(3), profileOf(4)];
    const body = {
      candidate: { purposes: candidate },
      against: { purposes: against },
      devices: uuids,
      start,
      end,
    };
    const answer = await fetch(`${service.url}/v2/backtests`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${token}`,
        'Content-Type': 'application/json',
        Accept: 'application/x-ndjson',
      },
      body: JSON.stringify(body),
    });
    const rest = (await answer.text()).trimEnd().split('\n');
    const devices = `devices=${uuids.join(',')}`;
    const file = join(folder, 'export');
    await writeFile(file, await get(`/v2/measurements?columns=arrivedTs&${devices}`, type));
    await writeFile(join(folder, 'a.json'), JSON.stringify(candidate));
    await writeFile(join(folder, 'b.json'), JSON.stringify(against));
    const args = ['--history', file, '--purposes', join(folder, 'a.json')];
    args.push('--against', join(folder, 'b.json'), '--start', `${start}`, '--end', `${end}`);
    return { rest: rest.map((line) => JSON.parse(line) as Line), args };
  }

  async function play(args: string[]): Promise<Line[]> {
    const options = parseOptions(args);
    if (options.kind !== 'history') throw new Error('it is one');
    const told: Line[] = [];
    await playHistory(options, {
      out: async (line) => void told.push(JSON.parse(line) as Line),
      warn: async () => {},
    });
    return told;
  }

  /** An export does not say when the connector listened. */
  const withoutListening = (lines: Line[]) =>
    lines.map(({ caveats, ...line }) => ({
      ...line,
      ...(Array.isArray(caveats) && {
        caveats: caveats.filter((caveat) => caveat !== 'listening-unknown'),
      }),
    }));

  test('of random histories: late, together, stamped by the service, imported', async () => {
    const one = fc.record({
      sId: fc.constantFrom('0x01', '0x02'),
      afterMs: fc.constantFrom(0, 0, 1, 1_000, minuteMs, 3 * minuteMs),
      lateMs: fc.constantFrom(0, 0, 70, 5 * minuteMs),
      val: fc.integer({ min: 0, max: 6 }),
      isStamped: fc.boolean(),
      isImported: fc.constantFrom(false, false, false, false, true),
    });
    let kinds = '';
    await fc.assert(
      fc.asyncProperty(
        fc.array(one, { minLength: 5, maxLength: 40 }),
        fc.constantFrom('text/csv', 'application/x-ndjson'),
        async (all, type) => {
          const { deviceAuthUuid } = await register();
          const start = Date.now() - 7_200_000;
          let arrivedTs = start;
          const taken = new Set<string>();
          const values = all.flatMap((each, nth): Value[] => {
            const { sId, afterMs, lateMs, val, isStamped, isImported } = each;
            arrivedTs += afterMs;
            const ts = arrivedTs - (isStamped ? 0 : lateMs);
            if (taken.has(`${sId}/${ts}`)) return [];
            taken.add(`${sId}/${ts}`);
            if (isImported) return [{ sId, ts, val, arrived: null, nth: null }];
            return [{ sId, ts, val, arrived: arrivedTs, nth: isStamped ? -1 - nth : nth }];
          });
          await store(deviceAuthUuid, values);
          const { rest, args } = await both([deviceAuthUuid], start, arrivedTs + 1_000_000, type);
          const told = await play(args);
          expect(withoutListening(told)).toEqual(withoutListening(rest));
          kinds += told.map(({ kind }) => kind).join(' ');
        },
      ),
      { numRuns: runs(16) },
    );
    expect(kinds).toMatch(/firing/);
    expect(kinds).toMatch(/move/);
    expect(kinds).toMatch(/alarm/);
    expect(kinds).toMatch(/difference/);
  });

  test('of what devices sent, as a program', async () => {
    const start = Date.now() - 1_000;
    const registered = [await register(), await register()];
    for (const registration of registered) {
      const device = await connectDevice(registration);
      for (const val of [5, 0, 4])
        await device.publish('up/measurements', [
          { sId: '0x02', val },
          { sId: '0x01', val },
        ]);
      await device.end();
    }
    const uuids = registered.map(({ deviceAuthUuid }) => deviceAuthUuid);
    const { rest, args } = await both(uuids, start, Date.now(), 'text/csv');
    const { status, stdout } = await runEngine(args);
    expect(status).toBe(0);
    const told = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    expect(withoutListening(told)).toEqual(withoutListening(rest));
    expect(told.at(-1)).toMatchObject({ kind: 'done', devices: 2, values: 12 });
  });
});

test.each([
  [['--history', 'x'], '--history: name the purposes with --purposes FILE.'],
  [['--history', 'x', '--purposes', 'y', '--explain'], '--explain cannot be combined'],
  [['--purposes', 'y', 'examples/freezer.json'], '--purposes belongs to --history.'],
  [['--history', 'x', '--purposes', 'y', '--start', '5', '--end', '4'], '--end: expected'],
])('%j is refused', (args, said) => {
  expect(() => parseOptions(args)).toThrow(said);
});

describe('an export that cannot be read', () => {
  test.each([
    ['no arrival is no error; a wrong line is', '{"sId":"0x1"}\n', ':1: invalid: deviceAuthUuid'],
    ['nothing', '', 'contains no measurement'],
    ['no header', '1,2\n', 'The first line of a CSV file names the columns'],
  ])('%s', async (_name, text, said) => {
    const folder = await mkdtemp(join(tmpdir(), 'history-'));
    const file = join(folder, 'export');
    await writeFile(file, text);
    const args = ['--history', file, '--purposes', 'examples/freezer.json'];
    const { status, stdout, stderr } = await runEngine(args);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain(said);
    await rm(folder, { recursive: true });
  });
});
