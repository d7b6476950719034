import { describe, expect, test } from 'vitest';
import { ConnectionPlaces } from '../../src/lib/connection-places.ts';
import { networks } from '../../src/lib/address.ts';

/** Connection places, with the name of each connection. */
function startPlaces(options: Partial<ConstructorParameters<typeof ConnectionPlaces>[0]> = {}) {
  const told: string[] = [];
  const open = new Map<string, { isBusy: boolean; isWaitedFor: boolean }>();
  const places = new ConnectionPlaces({
    most: 8,
    kept: 0,
    ofListener: { http: Infinity, mqtt: Infinity },
    onFull: (...what) => void told.push(what.join(' ')),
    ...options,
  });
  let count = 0;
  const enter = (address: string, listener: 'http' | 'mqtt' = 'http', state = {}) => {
    const name = `${address} ${(count += 1)}`;
    const held = { isBusy: false, isWaitedFor: false, ...state };
    const place = places.enter(listener, address, {
      socket: { destroy: () => open.delete(name) },
      mayGo: (isUrgent) => !held.isBusy || (isUrgent && held.isWaitedFor),
    });
    if (place) open.set(name, held);
    return place;
  };
  const namesOf = () => [...open.keys()];
  return { places, told, enter, namesOf };
}

describe('when all places are taken', () => {
  test('the oldest idle connection of the address that has most is closed', () => {
    const { enter, namesOf, told, places } = startPlaces({ most: 4 });
    for (const address of ['10.0.0.1', '10.0.0.2', '10.0.0.2', '10.0.0.3']) enter(address);
    expect(enter('10.0.0.4')).not.toBeNull();
    expect(namesOf()).toEqual(['10.0.0.1 1', '10.0.0.2 3', '10.0.0.3 4', '10.0.0.4 5']);
    expect(told).toEqual(['http closed 1']);
    expect(places.countOf('http')).toBe(4);
  });

  test('a connection with something under way stays, and then a new one finds no place', () => {
    const { enter, namesOf, told } = startPlaces({ most: 3 });
    for (let n = 0; n < 3; n += 1) enter('10.0.0.1', 'http', { isBusy: true });
    expect(enter('10.0.0.2')).toBeNull();
    expect(namesOf()).toHaveLength(3);
    expect(told).toEqual(['http refused 1']);
  });

  test('a connection that waits for its client is closed if no other is idle', () => {
    const { enter, namesOf } = startPlaces({ most: 3 });
    enter('10.0.0.1', 'http', { isBusy: true, isWaitedFor: true });
    enter('10.0.0.1', 'http', { isBusy: true });
    enter('10.0.0.2');
    enter('10.0.0.3');
    expect(namesOf()).toEqual(['10.0.0.1 1', '10.0.0.1 2', '10.0.0.3 4']);
    enter('10.0.0.3', 'http', { isBusy: true });
    enter('10.0.0.4', 'http', { isBusy: true });
    expect(namesOf()).toEqual(['10.0.0.1 2', '10.0.0.3 5', '10.0.0.4 6']);
  });

  test('a connection that waits for its client at an address with many is closed before an idle one at an address with few', () => {
    const { enter, namesOf } = startPlaces({ most: 6 });
    for (let n = 0; n < 5; n += 1) enter('10.0.0.1', 'http', { isBusy: true, isWaitedFor: true });
    enter('10.0.0.2');
    expect(enter('10.0.0.3')).not.toBeNull();
    expect(namesOf()).not.toContain('10.0.0.1 1');
    expect(namesOf()).toContain('10.0.0.2 6');
  });

  test('strangers are closed before clients that have logged in, however many of those an address has', () => {
    const { enter, namesOf } = startPlaces({ most: 5 });
    for (let n = 0; n < 3; n += 1) enter('10.0.0.1')?.know();
    enter('10.0.0.1');
    enter('10.0.0.2', 'http', { isBusy: true, isWaitedFor: true });
    enter('10.0.0.3')?.know();
    enter('10.0.0.3')?.know();
    expect(namesOf()).toEqual(
      [1, 2, 3].map((n) => `10.0.0.1 ${n}`).concat('10.0.0.3 6', '10.0.0.3 7'),
    );
    enter('10.0.0.4');
    expect(namesOf()).not.toContain('10.0.0.1 1');
  });

  test('a kept connection stays, however idle, and does not count for its address', () => {
    const { enter, namesOf, places } = startPlaces({ most: 4 });
    for (let n = 0; n < 3; n += 1) enter('10.0.0.1', 'mqtt')?.keep();
    enter('10.0.0.2', 'mqtt');
    expect(enter('10.0.0.3', 'mqtt')).not.toBeNull();
    expect(namesOf().map((name) => name.split(' ')[0])).toEqual([
      '10.0.0.1',
      '10.0.0.1',
      '10.0.0.1',
      '10.0.0.3',
    ]);
    expect(places.countOf('mqtt')).toBe(4);
  });

  test('a place that is freed is available at once', () => {
    const { enter } = startPlaces({ most: 2 });
    const first = enter('10.0.0.1', 'http', { isBusy: true });
    enter('10.0.0.1', 'http', { isBusy: true });
    expect(enter('10.0.0.2')).toBeNull();
    first?.leave();
    first?.leave();
    expect(enter('10.0.0.2')).not.toBeNull();
  });
});

test('each listener leaves the reserved places to the other', () => {
  const { enter, places } = startPlaces({ most: 8, kept: 2 });
  for (let n = 0; n < 20; n += 1) enter('10.0.0.1', 'http', { isBusy: true });
  expect(places.countOf('http')).toBe(6);
  for (let n = 0; n < 20; n += 1) enter('10.0.0.2', 'mqtt', { isBusy: true });
  expect(places.countOf('mqtt')).toBe(2);
});

describe('a client of IPv6', () => {
  test.each([
    ['2001:db8:1:203:a::1', ['2001:db8:1::/48', '2001:db8:1:200::/56', '2001:db8:1:203::/64']],
    ['2001:db8::1', ['2001:db8:0::/48', '2001:db8:0:000::/56', '2001:db8:0:0::/64']],
    ['192.0.2.7', ['192.0.2.7']],
  ])('%s is in the networks %j', (address, expected) => {
    expect(networks(address)).toEqual(expected);
  });

  test.each([
    ['/48', (n: number) => `2001:db8:1:${n.toString(16)}00::1`],
    ['/56', (n: number) => `2001:db8:1:5${n.toString(16).padStart(2, '0')}::1`],
    ['/64', (n: number) => `2001:db8:1:5::${n.toString(16)}`],
  ])('that comes from every part of its %s is one client', (_size, addressOf) => {
    const { enter, namesOf } = startPlaces({ most: 100 });
    for (let n = 0; n < 20; n += 1) enter('192.0.2.1');
    for (let n = 0; n < 10; n += 1) enter('2001:db8:2::1');
    for (let n = 0; n < 240; n += 1) enter(addressOf(n));
    const ofOthers = namesOf().filter((name) => !name.startsWith('2001:db8:1:'));
    expect(ofOthers).toHaveLength(30);
    expect(namesOf()).toHaveLength(100);
  });
});
