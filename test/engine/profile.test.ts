import { describe, expect, test } from 'vitest';
import { checkProfile } from '../../src/engine/check.ts';
import { Purpose } from '../../src/contract/purpose.ts';

describe('a profile is refused', () => {
  const going = (puId: number, engine: object) =>
    Purpose.parse({
      puId,
      initStId: 2,
      states: [{ stId: 2, events: [{ evId: 1, actions: { engine } }] }],
    });

  test('with two purposes of one puId', () => {
    expect(checkProfile([going(1, {}), going(2, {}), going(1, {})])).toEqual([
      {
        path: '/purposes/2/puId',
        message: 'another purpose of the profile already has the puId 1',
      },
    ]);
  });

  test('with a gotoPuId that it lacks, or a gotoStId that its gotoPuId lacks', () => {
    const problems = checkProfile([
      going(1, { gotoPuId: 3 }),
      going(2, { gotoPuId: 1, gotoStId: 7 }),
    ]);
    expect(problems).toEqual([
      {
        path: '/purposes/0/states/0/events/0/actions/engine/gotoPuId',
        message: 'no purpose of the profile has the puId 3',
      },
      {
        path: '/purposes/1/states/0/events/0/actions/engine/gotoStId',
        message: 'purpose 1 has no state with the stId 7',
      },
    ]);
  });

  test('but not if all moves lead somewhere', () => {
    expect(
      checkProfile([going(1, { gotoPuId: 2, gotoStId: 2 }), going(2, { gotoPuId: 1 })]),
    ).toEqual([]);
  });

  test('with the paths that the caller chooses', () => {
    const problems = checkProfile([going(1, { gotoPuId: 3 })], () => '/stored');
    expect(problems).toMatchObject([{ path: '/stored/states/0/events/0/actions/engine/gotoPuId' }]);
  });
});
