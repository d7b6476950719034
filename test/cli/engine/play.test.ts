import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { blocksOf, readProjectFile } from '../../docs/readme.ts';
import { runEngine, runForJson } from './run-engine.ts';

const minute = 60_000;
const start = Date.UTC(2026, 10, 23, 8);
const lines = (...all: unknown[]) => all.map((one) => `${JSON.stringify(one)}\n`).join('');
const value = (val: number, atMinute: number, sId = '0x10') => ({
  sId,
  val,
  ts: start + atMinute * minute,
});

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'engine-'))));
afterAll(() => rmSync(folder, { recursive: true }));

function written(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

test('the documentation shows what it prints', async () => {
  const page = readProjectFile('test/vectors/README.md');
  const [stream = ''] = blocksOf(page, 'ndjson');
  const [shown = ''] = blocksOf(page, 'text').filter((text) => text.includes('tick: "too warm"'));
  const args = ['examples/freezer.json', '--until', '2026-11-23T08:45:00Z'];
  const { status, stdout, stderr } = await runEngine(args, stream);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.trim()).toBe(shown.trim());
});

test('firings, moves and texts of an example, with the lines that led to them', async () => {
  const stream = lines(value(9, 0), [value(9, 1), value(7, 2)], value(5, 3), value(5, 4));
  expect(await runForJson(['examples/cold-room.json'], stream)).toMatchObject([
    {
      kind: 'measured',
      line: 2,
      measurement: value(9, 1),
      fires: [{ evId: 1, name: 'too warm', tells: 'silent-alarm', first: true, record: true }],
      shows: ['Too warm: close the door'],
      moves: { stId: 2, event: { event: 'stateChanged', oldValue: 1, newValue: 2 } },
    },
    { kind: 'measured', line: 4, fires: [{ name: 'cold again' }], moves: { stId: 1 } },
    { kind: 'end', nowTs: start + 4 * minute, ends: { puId: 1, stId: 1 }, nextDueTs: null },
  ]);
});

test('what time alone completes happens when it is due, in the times of the stream', async () => {
  const args = ['examples/silent-sensor.json', '--installed', String(start)];
  const stream = lines({ tick: { at: start + 19 * minute } }, value(1, 60));
  expect(await runForJson(args, stream)).toMatchObject([
    { kind: 'tick', arrivedTs: start + 15 * minute, fires: [{ name: 'silent' }] },
    { kind: 'measured', line: 2, fires: [{ name: 'heard again' }] },
    { kind: 'end', nextDueTs: start + 75 * minute },
  ]);
});

test('reports what is late, ahead or stored already, and why nothing fires', async () => {
  const ahead = { ...value(9, 60), arrivedTs: start + 2 * minute };
  const stream = lines(value(9, 1), value(9, 1), value(9, 0), ahead);
  const told = await runForJson(['examples/cold-room.json', '--explain'], stream);
  expect(told).toMatchObject([
    { kind: 'not-evaluated', line: 2 },
    { kind: 'not-evaluated', line: 3 },
    { kind: 'measured', line: 4, moves: { stId: 2 } },
    { kind: 'remark', line: 4, reason: 'clock-ahead' },
    { kind: 'end', events: [{ evId: 1, causes: [{ text: 'waits for the next measurement' }] }] },
  ]);
});

test('the stream may contain reported states and other profiles', async () => {
  const purpose = JSON.parse(readFileSync('examples/freezer.json', 'utf8')) as unknown;
  const stream = lines(
    { enter: { puId: 1, stId: 2, evId: 7 }, arrivedTs: start },
    { enter: { puId: 1, stId: 2 } },
    { install: [purpose], arrivedTs: start + minute },
  );
  expect(await runForJson(['examples/cold-room.json'], stream)).toMatchObject([
    { kind: 'entered', line: 1, moves: { event: { engine: { evId: 7, ts: start } } } },
    { kind: 'entered', line: 2, moves: null },
    { kind: 'installed', line: 3, place: { puId: 3, stId: 1 } },
    { kind: 'end', ends: { puId: 3, stId: 1 }, nextDueTs: start + 31 * minute },
  ]);
});

test('a list of purposes, a profile and several files are one profile each', async () => {
  const files = ['examples/cold-room.json', 'examples/freezer.json'];
  const purposes = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as unknown);
  const list = written('list.json', purposes);
  const profile = written('profile.json', { pId: 'p', purposes, ts: 1 });
  const stream = lines(value(9, 0), value(9, 1));
  const asked = [files, [list], [profile]].map((these) => runForJson(these, stream));
  const [one, two, three] = await Promise.all(asked);
  expect(one).toMatchObject([{ kind: 'measured', moves: { stId: 2 } }, { kind: 'end' }]);
  expect([two, three]).toEqual([one, one]);
  // Nothing leads to the second one.
  expect((await runEngine(files, stream)).stderr).toMatch(
    /^warning: examples\/freezer.json: .*\(unreachable-purpose\)\n$/,
  );
});

describe('errors name their place', () => {
  const good = `${JSON.stringify(value(9, 0))}\n`;
  const wrongLines: [name: string, stream: string, message: string][] = [
    ['not JSON', `${good}{"sId":"0x10",val:9}\n`, 'standard input:2:15: expected a name'],
    [
      'a cut line',
      `${good}\n{"sId":\n`,
      'standard input:3:8: expected a value, found the end of the line. Each line',
    ],
    [
      'another type',
      good + lines({ ...value(9, 1), val: '9' }),
      'standard input:2 /val: expected a finite number',
    ],
    [
      'in an array',
      lines([value(9, 0), { sid: '0x10', val: 1 }]),
      '/1/sid: unknown member sid has no effect; did you mean sId?',
    ],
    [
      'another step',
      lines({ measure: value(9, 0) }),
      'standard input:1: expected a measurement { sId, val, ts }, an array',
    ],
    [
      'without a time',
      lines({ sId: '0x10', val: 9 }),
      'standard input:1: the first line must give a time',
    ],
    [
      'back in time',
      good + lines({ ...value(9, 1), arrivedTs: 5 }),
      'standard input:2: its time 5 is before that of the previous line',
    ],
    [
      'another profile',
      good + lines({ install: [{ puId: 1 }] }),
      'standard input:2 /install/0/initStId: ',
    ],
  ];
  test.each(wrongLines)('in a stream: %s', async (_name, stream, message) => {
    const { status, stderr } = await runEngine(['examples/cold-room.json'], stream);
    expect(stderr).toContain(message);
    expect(status).toBe(1);
  });

  const state = { stId: 1, events: [{ evId: 1, actions: { engine: { gotoPuId: 9 } } }] };
  const wrongFiles: [name: string, content: unknown, message: string][] = [
    [
      'cut',
      '{"puId":1,\n"initStId":',
      'cut.json:2:12: expected a value, found the end of the file.',
    ],
    ['no purpose', [], 'The file contains no purpose.'],
    [
      'no state',
      { puId: 1, initStId: 2, states: [] },
      'no state.json /initStId: no state has the stId 2',
    ],
    [
      'leads nowhere',
      [{ puId: 1, initStId: 1, states: [state] }],
      'leads nowhere.json /0/states/0/events/0/actions/engine/gotoPuId: no purpose of the profile has the puId 9',
    ],
  ];
  test.each(wrongFiles)('in a file: %s', async (name, content, message) => {
    const { status, stderr } = await runEngine([written(`${name}.json`, content)], good);
    expect(stderr).toContain(message);
    expect(status).toBe(1);
  });

  const wrongOptions: [args: string[], message: string][] = [
    [[], 'No purpose given: name a file'],
    [['examples/freezer.json', '--until', 'noon'], '--until: expected a time'],
    [['--vectors', 'x', '--answers', 'y'], 'cannot be combined with files or other options'],
  ];
  test.each(wrongOptions)('in options: %j', async (args, message) => {
    const { status, stderr } = await runEngine(args);
    expect(stderr).toContain(message);
    expect(status).toBe(2);
  });
});
