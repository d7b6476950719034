import { describe, expect, it } from 'vitest';
import { acknowledgedAlarm, snoozed, unquieted } from '../../src/alarms/rules.ts';
import { cold, Device, ended, fired, minute, moved, signal, start } from './fixtures.ts';
import { unreached, warm } from './fixtures.ts';

const day = 24 * 60 * minute;

describe('a reported event', () => {
  const report = (atMs: number, isFresh = true) =>
    fired({ atMs, isFresh, reportKey: 'p/1/1/1', movedTo: warm });

  it('on Monday and Tuesday, the state reported after it: announced twice, and none stays open', () => {
    const device = new Device();
    for (const monday of [0, day]) {
      expect(device.take(report(monday))).toEqual(['told']);
      device.take(moved(cold, warm, true, monday + minute));
      expect(device.isOpen).toBe(true);
      device.take(moved(warm, cold, true, monday + 2 * minute));
    }
    expect(device.closings).toEqual(['left-state', 'left-state']);
  });

  it('the state reported before it: the same', () => {
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

  it('that is too old does not fire; causes and moves of the service end nothing', () => {
    const device = new Device();
    expect(device.take(report(0, false))).toEqual(['too-old']);
    expect(device.isOpen).toBe(false);
    device.take(report(0), ended(), moved(warm, cold, false));
    expect(device.isOpen).toBe(true);
  });
});

describe('an announcement', () => {
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

  it('is not made if the fresh measurement ends the alarm', () => {
    const device = new Device();
    device.take(fired({ isFresh: false }));
    device.take(ended(minute), signal({ kind: 'heard', sIds: ['0x01'] }, minute));
    expect(device.asks).toHaveLength(0);
  });

  it('that a measurement caused makes a firing in the same transaction `same-episode`', () => {
    const device = new Device();
    device.take(fired({ isFresh: false }));
    const heard = signal({ kind: 'heard', sIds: ['0x01'] }, minute);
    expect(device.take(heard, fired({ atMs: minute, isFirst: false }))).toEqual(['same-episode']);
  });

  it('is refused with the first that applies of too-old, acknowledged and snoozed', () => {
    const device = new Device();
    device.answer = unreached;
    device.take(fired());
    Object.assign(device.alarm, acknowledgedAlarm(device.alarm, 'me', start));
    device.before.mute = { untilTs: start + day, reason: null, by: 'me' };
    const more = { isFirst: false };
    expect(device.take(fired({ ...more, isFresh: false }))).toEqual(['too-old']);
    expect(device.take(fired(more))).toEqual(['acknowledged']);
    Object.assign(device.alarm, { acknowledgedTs: null });
    expect(device.take(fired(more))).toEqual(['snoozed']);
    expect(device.alarm.nextTs).toBe(start + day);
  });

  it('that was withdrawn is followed by a pause, until the timer makes it again', () => {
    const device = new Device();
    device.take(fired());
    const pause = { told: 'withdrawn', announcedTs: null, failures: 1, nextTs: start + minute };
    Object.assign(device.alarm, pause);
    const more = (atMs: number) => device.take(fired({ atMs, isFirst: false }));
    expect(more(minute - 1)).toEqual(['same-episode']);
    expect(more(minute)).toEqual(['told']);
    expect(device.alarm.announcement).toBe(2);
  });

  it('is repeated by the timer according to `repeatMs`', () => {
    const device = new Device();
    device.take(fired({ actions: { repeatMs: 60 * minute } }));
    expect(device.alarm.nextTs).toBe(start + 60 * minute);
  });

  it('an episode that began before an upgrade opens an alarm that counts as announced; later ones are announced', () => {
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
    const set = acknowledgedAlarm(device.alarm, 'me', start);
    expect(set).toMatchObject({ acknowledgedTs: start, acknowledgedBy: 'me', nextTs: null });
    Object.assign(device.alarm, set);
    expect(acknowledgedAlarm(device.alarm, 'you', start + 1)).toBeNull();
    device.take(ended());
    const [closed] = device.closed;
    expect(
      closed && acknowledgedAlarm({ ...closed, acknowledgedTs: null }, 'me', start),
    ).toBeNull();
  });

  it('snoozes: an announcement and an acknowledgement are withdrawn, and the timer announces it when the snooze ends', () => {
    const device = new Device();
    device.take(fired());
    Object.assign(device.alarm, acknowledgedAlarm(device.alarm, 'me', start));
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
