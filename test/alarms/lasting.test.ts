import { describe, expect, it } from 'vitest';
import {
  cold,
  Device,
  ended,
  fired,
  minute,
  moved,
  of,
  reached,
  signal,
  start,
} from './fixtures.ts';
import { unreached, warm } from './fixtures.ts';

const isAny = { tells: 'notice' as const };
const day = 24 * 60 * minute;

describe('an alarm', () => {
  it('is opened by a firing, announced once, and goes on with further firings', () => {
    const device = new Device();
    expect(device.take(fired())).toEqual(['told']);
    expect(device.take(fired({ atMs: minute, isFirst: false }))).toEqual(['same-episode']);
    expect(device.alarm).toMatchObject({
      sinceTs: start,
      lastFiringTs: start + minute,
      firings: 2,
      told: 'queued',
      announcement: 1,
      announcedTs: start,
    });
  });

  it('that requests no messages notifies nobody and records nothing on events', () => {
    const device = new Device();
    expect(device.take(fired({ tells: 'silent-alarm' }))).toEqual([null]);
    expect(device.alarm).toMatchObject({ told: 'none', notNotified: null, nextTs: null });
    expect(device.asks).toEqual([]);
  });

  it('is announced once for several firings in one transaction', () => {
    const device = new Device();
    expect(device.take(fired(), fired({ isFirst: false }), fired({ isFirst: false }))).toEqual([
      'told',
      'same-episode',
      'same-episode',
    ]);
    expect(device.asks).toHaveLength(1);
  });

  it('whose firings all come while nobody can be notified says so on each', () => {
    const device = new Device();
    device.answer = unreached;
    const late = fired({ isFirst: false, isFresh: false });
    expect(device.take(fired(), fired({ isFirst: false }), late)).toEqual([
      'no-recipient',
      'no-recipient',
      'too-old',
    ]);
    expect(device.alarm).toMatchObject({ told: 'none', nextTs: start + 15 * minute });
    device.answer = reached;
    expect(device.take(fired({ atMs: minute, isFirst: false }))).toEqual(['told']);
  });
});

describe('a notice', () => {
  it('is sent at every fresh firing, and not stored', () => {
    const device = new Device();
    expect(device.take(fired(isAny), fired({ ...isAny, isFirst: false }))).toEqual([
      'told',
      'told',
    ]);
    expect(device.take(fired({ ...isAny, isFresh: false }))).toEqual(['too-old']);
    expect(device.isOpen).toBe(false);
  });

  it('with a move is sent only if the device came from another state', () => {
    const actions = { engine: { gotoStId: 1 } };
    const device = new Device();
    expect(device.take(fired({ ...isAny, actions, from: warm, movedTo: cold }))).toEqual(['told']);
    expect(device.take(fired({ ...isAny, actions, from: cold, movedTo: cold }))).toEqual([
      'same-episode',
    ]);
  });

  it('is suppressed by a mute and not by a snooze', () => {
    const device = new Device();
    const quiet = { untilTs: start + minute, reason: null, by: 'me' };
    device.before.snoozes = [{ ...quiet, of, pId: 'p' }];
    expect(device.take(fired(isAny))).toEqual(['told']);
    device.before.mute = quiet;
    expect(device.take(fired(isAny))).toEqual(['snoozed']);
    expect(device.take(fired({ ...isAny, atMs: minute }))).toEqual(['told']);
  });
});

describe('an alarm lasts', () => {
  it('(a) until the device leaves the state that the newest firing moved it to, whatever the causes say', () => {
    const device = new Device();
    device.take(fired({ movedTo: warm }), moved(cold, warm));
    device.take(ended());
    expect(device.isOpen).toBe(true);
    device.take(moved(warm, cold));
    expect(device.closings).toEqual(['left-state']);
  });

  it('(a) even if a later event made the move', () => {
    const device = new Device();
    device.take(fired({ movedTo: warm, actions: {} }), moved(cold, warm));
    expect(device.alarm.movedTo).toEqual(warm);
  });

  it('(a) goes on if its state is entered anew, and ends with the episode if the newest firing moved nothing', () => {
    const device = new Device();
    const again = { isGlobal: true, from: warm, isFirst: false };
    device.take(fired({ isGlobal: true, movedTo: warm }), moved(cold, warm));
    device.take(fired({ ...again, movedTo: warm }));
    device.take(ended());
    expect(device.isOpen).toBe(true);
    device.take(fired(again));
    device.take(ended());
    expect(device.closings).toEqual(['cleared']);
  });

  it('(b) as long as the episode: until a cause disagrees', () => {
    const device = new Device();
    device.take(fired());
    device.take(signal({ kind: 'ended', of: [{ ...of, evId: 2 }], ts: start }));
    expect(device.isOpen).toBe(true);
    device.take(ended());
    expect(device.closings).toEqual(['cleared']);
  });

  it('(b) until its state is left, or the purpose if its state is global', () => {
    const local = new Device();
    local.take(fired());
    local.take(moved(cold, warm));
    expect(local.closings).toEqual(['left-state']);
    const global = new Device();
    global.take(fired({ isGlobal: true }));
    global.take(moved(cold, warm));
    expect(global.isOpen).toBe(true);
    global.take(moved(warm, { puId: 2, stId: 1 }));
    expect(global.closings).toEqual(['left-state']);
  });

  it('for `keepMs` more, without announcements; a firing continues it', () => {
    const device = new Device();
    const actions = { keepMs: 10 * minute };
    expect(device.take(fired({ actions }))).toEqual(['told']);
    device.take(ended(minute));
    expect(device.alarm.endsTs).toBe(start + 11 * minute);
    expect(device.take(fired({ atMs: 5 * minute, actions }))).toEqual(['same-episode']);
    expect(device.alarm.endsTs).toBeNull();
    device.take(ended(6 * minute));
    expect(device.take(fired({ atMs: 16 * minute, actions }))).toEqual(['told']);
    expect(device.closings).toEqual(['cleared']);
    expect(device.closed[0]?.closedTs).toBe(start + 16 * minute);
  });

  it('values alternating between 8.1 and 7.9 with `keepMs` of 10 minutes: one alarm, announced once', () => {
    const device = new Device();
    const actions = { keepMs: 10 * minute };
    const said = Array.from({ length: 30 }, (_, n) => [
      ...device.take(fired({ atMs: 2 * n * minute, actions })),
      ...device.take(ended((2 * n + 1) * minute)),
    ]).flat();
    expect(said.filter((word) => word === 'told')).toHaveLength(1);
    expect(device.closings).toEqual([]);
  });

  it('a global event with a move, values 9, 5, 9, where the 5 moves it back: two alarms, announced twice', () => {
    const device = new Device();
    const nine = () => [fired({ isGlobal: true, movedTo: warm }), moved(cold, warm)];
    expect(device.take(...nine())).toEqual(['told']);
    device.take(ended(), moved(warm, cold));
    expect(device.take(...nine())).toEqual(['told']);
    expect(device.closings).toEqual(['left-state']);
  });
});

describe('an alarm closes', () => {
  it('with the profile, at once, and its snooze with it', () => {
    const device = new Device();
    const quiet = { untilTs: start + day, reason: null, by: 'me' };
    device.before.snoozes = [{ ...quiet, of, pId: 'p' }];
    expect(device.take(fired({ actions: { keepMs: minute } }))).toEqual(['snoozed']);
    device.take(signal({ kind: 'profile' }));
    expect(device.closings).toEqual(['profile']);
    expect(device.take(fired({ atMs: minute }))).toEqual(['told']);
  });

  it('if a sense of its event is gone', () => {
    const device = new Device();
    device.take(fired());
    device.take(signal({ kind: 'configuration', sIds: ['0x01', '0x02'] }));
    expect(device.isOpen).toBe(true);
    device.take(signal({ kind: 'configuration', sIds: ['0x02'] }));
    expect(device.closings).toEqual(['configuration']);
  });

  it('by a person, and its episode with it: the next firing opens another one, which is announced', () => {
    const device = new Device();
    device.take(fired());
    device.before.open = [];
    expect(device.take(fired({ atMs: minute, isFirst: false }))).toEqual(['told']);
  });

  it('and opens again in one transaction', () => {
    const device = new Device();
    expect(device.take(fired(), ended(), fired({ atMs: 1 }))).toEqual(['told', 'told']);
    expect(device.closings).toEqual(['cleared']);
  });
});
