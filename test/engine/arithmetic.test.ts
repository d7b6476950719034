import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isInside, preparePolygon, roundDecimal } from '../../src/engine/arithmetic.ts';
import { runs } from '../support/share.ts';

describe('rounding of decimal text', () => {
  test.each([
    [2.55, 1, 2.6],
    [-2.55, 1, -2.6],
    [1.005, 2, 1.01],
    [0.5, 0, 1],
    [-0.5, 0, -1],
    [0.49999999999999994, 0, 0],
    [9.95, 1, 10],
    [99.999, 2, 100],
    [0.1, 5, 0.1],
    [3, 0, 3],
    [1e21, 2, 1e21],
    [1.5e-7, 7, 2e-7],
    [1e-7, 3, 0],
    [5e-324, 20, 0],
    [123456789.125, 2, 123456789.13],
    [0.05, 0, 0],
    [0.05, 1, 0.1],
    [0, 2, 0],
  ])('%d to %d decimals is %d', (value, decimals, expected) => {
    expect(roundDecimal(value, decimals)).toBe(expected);
  });

  const decimals = fc.integer({ min: 0, max: 20 });

  test('moves a number by at most half a unit of the last place', () => {
    fc.assert(
      fc.property(fc.double({ min: -1e6, max: 1e6, noNaN: true }), decimals, (value, places) => {
        const rounded = roundDecimal(value, places);
        expect(Math.abs(rounded - value)).toBeLessThanOrEqual(0.5 * 10 ** -places + 1e-9);
      }),
      { numRuns: runs(1_000) },
    );
  });

  test('changes nothing the second time, and treats both signs alike', () => {
    fc.assert(
      fc.property(
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        decimals,
        (value, places) => {
          const rounded = roundDecimal(value, places);
          expect(roundDecimal(rounded, places)).toBe(rounded);
          expect(roundDecimal(-value, places) + rounded).toBe(0);
        },
      ),
      { numRuns: runs(1_000) },
    );
  });
});

describe('polygons', () => {
  const angle = (max: number) => fc.integer({ min: -max, max });
  const rectangle = fc
    .record({
      south: angle(80),
      west: angle(180),
      height: fc.integer({ min: 1, max: 9 }),
      width: fc.integer({ min: 1, max: 170 }),
    })
    .map((box) => ({ ...box, north: box.south + box.height }));
  const wrap = (long: number) => ((((long + 180) % 360) + 360) % 360) - 180;

  test('a rectangle anywhere on the globe contains what is between its edges, and nothing else', () => {
    fc.assert(
      fc.property(rectangle, angle(90), angle(180), ({ south, north, west, width }, lat, long) => {
        const east = wrap(west + width);
        const polygon = preparePolygon([
          { lat: south, long: west },
          { lat: south, long: east },
          { lat: north, long: east },
          { lat: north, long: west },
        ]);
        const eastward = (((long - west) % 360) + 360) % 360;
        const expected = lat >= south && lat <= north && eastward <= width;
        expect(isInside(polygon, { lat, long })).toBe(expected);
      }),
      { numRuns: runs(2_000) },
    );
  });

  test('a polygon may begin at any corner', () => {
    const corners = fc.array(
      fc.record({ lat: angle(80), long: fc.integer({ min: -60, max: 60 }) }),
      { minLength: 3, maxLength: 8 },
    );
    fc.assert(
      fc.property(corners, angle(80), angle(60), fc.nat(7), (points, lat, long, shift) => {
        const turned = [...points.slice(shift), ...points.slice(0, shift)];
        const place = { lat, long };
        expect(isInside(preparePolygon(turned), place)).toBe(
          isInside(preparePolygon(points), place),
        );
        const across = points.map((point) => ({ ...point, long: wrap(point.long + 180) }));
        expect(isInside(preparePolygon(across), { lat, long: wrap(long + 180) })).toBe(
          isInside(preparePolygon(points), place),
        );
      }),
      { numRuns: runs(1_000) },
    );
  });

  test('a polygon that winds round the globe contains what any of its windings contains', () => {
    const corner = fc.record({ lat: angle(3), long: fc.constantFrom(-180, -179, -60, 0, 61, 120) });
    const corners = fc.array(corner, { minLength: 3, maxLength: 30 });
    fc.assert(
      fc.property(
        corners,
        angle(3),
        fc.constantFrom(-180, -120, -60, 0, 30, 60),
        (at, lat, long) => {
          const polygon = preparePolygon(at);
          const turns = Array.from({ length: 61 }, (_, turn) => long + 360 * (turn - 30));
          const expected = turns.some((x) => windsRound(polygon.corners, x, lat));
          expect(isInside(polygon, { lat, long })).toBe(expected);
        },
      ),
      { numRuns: runs(3_000) },
    );
  });

  test('a polygon without points contains nothing', () => {
    expect(isInside(preparePolygon([]), { lat: 0, long: 0 })).toBe(false);
  });
});

/** Whether a line to the east crosses an odd number of edges, or the point lies on one. */
function windsRound(corners: { x: number; y: number }[], x: number, y: number): boolean {
  const edges = corners.map((to, index) => ({ from: corners.at(index - 1) ?? to, to }));
  const crossed = edges.filter(({ from, to }) => {
    if (from.y > y === to.y > y) return false;
    return x < from.x + ((y - from.y) / (to.y - from.y)) * (to.x - from.x);
  });
  return crossed.length % 2 === 1 || edges.some(({ from, to }) => liesOn(from, to, { x, y }));
}

type Point = { x: number; y: number };

function liesOn(from: Point, to: Point, { x, y }: Point): boolean {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy);
  const along = length === 0 ? 0 : ((x - from.x) * dx + (y - from.y) * dy) / length ** 2;
  const at = Math.max(0, Math.min(1, along));
  return Math.hypot(from.x + at * dx - x, from.y + at * dy - y) <= 1e-9;
}
