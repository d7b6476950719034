import { describe, expect, it } from 'vitest';
import { acknowledged, snoozed, unquieted } from '../../src/alarms/rules/person.ts';
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
  it('is opened by a firing, told once, and goes on with further ones', () => {
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

  it('that asks for no messages tells nobody and says nothing on events', () => {
    const device = new Device();
    expect(device.take(fired({ tells: 'silent-alarm' }))).toEqual([null]);
    expect(device.alarm).toMatchObject({ told: 'none', notNotified: null, nextTs: null });
    expect(device.asks).toEqual([]);
  });

  it('of several firings in one transaction tells one', () => {
    const device = new Device();
    expect(device.take(fired(), fired({ isFirst: false }), fired({ isFirst: false }))).toEqual([
      'told',
      'same-episode',
      'same-episode',
    ]);
    expect(device.asks).toHaveLength(1);
  });

  it('whose firings all come while nobody can be told says so on each', () => {
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
  it('is told at every fresh firing, and not kept', () => {
    const device = new Device();
    expect(device.take(fired(isAny), fired({ ...isAny, isFirst: false }))).toEqual([
      'told',
      'told',
    ]);
    expect(device.take(fired({ ...isAny, isFresh: false }))).toEqual(['too-old']);
    expect(device.isOpen).toBe(false);
  });

  it('with a move is told only where the device came from another state', () => {
    const actions = { engine: { gotoStId: 1 } };
    const device = new Device();
    expect(device.take(fired({ ...isAny, actions, from: warm, movedTo: cold }))).toEqual(['told']);
    expect(device.take(fired({ ...isAny, actions, from: cold, movedTo: cold }))).toEqual([
      'same-episode',
    ]);
  });

  it('is quieted by a mute and not by a snooze', () => {
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
  it('(a) until the device leaves the state that the newest firing moved it to, whatever causes say', () => {
    const device = new Device();
    device.take(fired({ movedTo: warm }), moved(cold, warm));
    device.take(ended());
    expect(device.isOpen).toBe(true);
    device.take(moved(warm, cold));
    expect(device.closings).toEqual(['left-state']);
  });

  it('(a) also where a later event made the move', () => {
    const device = new Device();
    device.take(fired({ movedTo: warm, actions: {} }), moved(cold, warm));
    expect(device.alarm.movedTo).toEqual(warm);
  });

  it('(a) goes on where its state is entered anew, and ends with the episode where the newest firing moved nothing', () => {
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
    device.take(signal({ kind: 'ended', of: [{ ...of, evId: 2 }] }));
    expect(device.isOpen).toBe(true);
    device.take(ended());
    expect(device.closings).toEqual(['cleared']);
  });

  it('(b) until its state is left, or the purpose where its state is global', () => {
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

  it('`keepMs` longer, in which nothing is told; a firing goes on with it', () => {
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

  it('values of 8.1 and 7.9 in turn with `keepMs` of 10 minutes: one alarm, told once', () => {
    const device = new Device();
    const actions = { keepMs: 10 * minute };
    const said = Array.from({ length: 30 }, (_, n) => [
      ...device.take(fired({ atMs: 2 * n * minute, actions })),
      ...device.take(ended((2 * n + 1) * minute)),
    ]).flat();
    expect(said.filter((word) => word === 'told')).toHaveLength(1);
    expect(device.closings).toEqual([]);
  });

  it('a global event with a move, values 9, 5, 9, where the 5 moves it back: two alarms, told twice', () => {
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

  it('where a sense of its event is gone', () => {
    const device = new Device();
    device.take(fired());
    device.take(signal({ kind: 'configuration', sIds: ['0x01', '0x02'] }));
    expect(device.isOpen).toBe(true);
    device.take(signal({ kind: 'configuration', sIds: ['0x02'] }));
    expect(device.closings).toEqual(['configuration']);
  });

  it('by a person, and its episode with it: the next firing opens another one, which is told', () => {
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

describe('a reported event', () => {
  const report = (atMs: number, isFresh = true) =>
    fired({ atMs, isFresh, reportKey: 'p/1/1/1', movedTo: warm });

  it('on Monday and Tuesday, the state reported after it: told twice, and none stays open', () => {
    const device = new Device();
    for (const monday of [0, day]) {
      expect(device.take(report(monday))).toEqual(['told']);
      device.take(moved(cold, warm, true, monday + minute));
      expect(device.isOpen).toBe(true);
      device.take(moved(warm, cold, true, monday + 2 * minute));
    }
    expect(device.closings).toEqual(['left-state', 'left-state']);
  });

  it('the state reported before it: likewise', () => {
    const device = new Device();
    for (const monday of [0, day]) {
      device.take(moved(cold, warm, true, monday));
      expect(device.take(report(monday + 1))).toEqual(['told']);
      device.take(moved(warm, cold, true, monday + minute));
    }
    expect(device.closings).toEqual(['left-state', 'left-state']);
  });

  it('expires an hour after the newest report', () => {
    const device = new Device();
    device.take(report(0));
    expect(device.take(report(30 * minute))).toEqual(['same-episode']);
    expect(device.take(report(89 * minute))).toEqual(['same-episode']);
    expect(device.take(report(149 * minute))).toEqual(['told']);
    expect(device.closings).toEqual(['expired']);
  });

  it('that is too old is no firing; causes and moves of the service end nothing', () => {
    const device = new Device();
    expect(device.take(report(0, false))).toEqual(['too-old']);
    expect(device.isOpen).toBe(false);
    device.take(report(0), ended(), moved(warm, cold, false));
    expect(device.isOpen).toBe(true);
  });
});

describe('telling', () => {
  it('waits, after a firing that is too old, for the next fresh measurement that leaves it open', () => {
    const device = new Device();
    expect(device.take(fired({ isFresh: false }))).toEqual(['too-old']);
    expect(device.alarm).toMatchObject({ waitsForFresh: true, nextTs: start + 15 * minute });
    device.take(signal({ kind: 'heard', sIds: ['0x02'] }, minute));
    expect(device.asks).toHaveLength(0);
    device.take(signal({ kind: 'heard', sIds: ['0x01'] }, minute));
    expect(device.asks).toHaveLength(1);
    expect(device.alarm).toMatchObject({ told: 'queued', waitsForFresh: false, nextTs: null });
    expect(device.alarm.event.notified).toBe(false);
  });

  it('tells nobody where the fresh measurement ends it', () => {
    const device = new Device();
    device.take(fired({ isFresh: false }));
    device.take(ended(minute), signal({ kind: 'heard', sIds: ['0x01'] }, minute));
    expect(device.asks).toHaveLength(0);
  });

  it('a firing in the transaction that was told because of a measurement says `same-episode`', () => {
    const device = new Device();
    device.take(fired({ isFresh: false }));
    const heard = signal({ kind: 'heard', sIds: ['0x01'] }, minute);
    expect(device.take(heard, fired({ atMs: minute, isFirst: false }))).toEqual(['same-episode']);
  });

  it('is the first that applies of too-old, acknowledged and snoozed', () => {
    const device = new Device();
    device.answer = unreached;
    device.take(fired());
    Object.assign(device.alarm, acknowledged(device.alarm, 'me', start));
    device.before.mute = { untilTs: start + day, reason: null, by: 'me' };
    const more = { isFirst: false };
    expect(device.take(fired({ ...more, isFresh: false }))).toEqual(['too-old']);
    expect(device.take(fired(more))).toEqual(['acknowledged']);
    Object.assign(device.alarm, { acknowledgedTs: null });
    expect(device.take(fired(more))).toEqual(['snoozed']);
    expect(device.alarm.nextTs).toBe(start + day);
  });

  it('pauses where an announcement was taken back, until the timer tells it', () => {
    const device = new Device();
    device.take(fired());
    const pause = { told: 'withdrawn', announcedTs: null, failures: 1, nextTs: start + minute };
    Object.assign(device.alarm, pause);
    const more = (atMs: number) => device.take(fired({ atMs, isFirst: false }));
    expect(more(minute - 1)).toEqual(['same-episode']);
    expect(more(minute)).toEqual(['told']);
    expect(device.alarm.announcement).toBe(2);
  });

  it('is repeated by the timer as `repeatMs` says', () => {
    const device = new Device();
    device.take(fired({ actions: { repeatMs: 60 * minute } }));
    expect(device.alarm.nextTs).toBe(start + 60 * minute);
  });

  it('an episode that had begun before an upgrade opens an alarm that is announced; later ones are told', () => {
    const device = new Device();
    device.before.carried = { known: new Set() };
    expect(device.take(fired({ isFirst: false }))).toEqual(['same-episode']);
    expect(device.alarm).toMatchObject({ told: 'told', announcedTs: start });
    device.take(ended());
    expect(device.take(fired())).toEqual(['told']);
    device.before.open = [];
    device.before.carried = { known: new Set(['1/1/1']) };
    expect(device.take(fired({ isFirst: false }))).toEqual(['told']);
  });
});

describe('a person', () => {
  it('acknowledges once, and nothing that is closed', () => {
    const device = new Device();
    device.take(fired({ actions: { repeatMs: minute } }));
    const set = acknowledged(device.alarm, 'me', start);
    expect(set).toMatchObject({ acknowledgedTs: start, acknowledgedBy: 'me', nextTs: null });
    Object.assign(device.alarm, set);
    expect(acknowledged(device.alarm, 'you', start + 1)).toBeNull();
    device.take(ended());
    const [closed] = device.closed;
    expect(closed && acknowledged({ ...closed, acknowledgedTs: null }, 'me', start)).toBeNull();
  });

  it("snoozes: an announcement and an acknowledgement are taken back, and the timer tells it at the snooze's end", () => {
    const device = new Device();
    device.take(fired());
    Object.assign(device.alarm, acknowledged(device.alarm, 'me', start));
    Object.assign(device.alarm, snoozed(device.alarm, { untilTs: start + day }));
    expect(device.alarm).toMatchObject({
      told: 'withdrawn',
      announcedTs: null,
      acknowledgedTs: null,
      nextTs: start + day,
    });
    expect(unquieted(device.alarm, start + 1, start + day)).toEqual({ nextTs: start + 1 });
  });
});
