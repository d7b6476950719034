import { listLatestOfAll } from '../../api/measurements.ts';

/** Where a device is: its newest position. */
export type Placed = { deviceAuthUuid: string; lat: number; long: number; ts: number };

const pages = 10;

/** The newest position of each of the first 5,000 devices. `isCut`: there are more devices. */
export async function listPlaced(
  signal?: AbortSignal,
): Promise<{ places: Placed[]; isCut: boolean }> {
  const newest = new Map<string, Placed>();
  let cursor: string | null = '';
  for (let page = 0; page < pages && cursor !== null; page += 1) {
    const answer: Awaited<ReturnType<typeof listLatestOfAll>> = await listLatestOfAll(
      cursor,
      signal,
    );
    for (const { deviceAuthUuid, val, ts } of answer.body.latest) {
      if (typeof val === 'number' || ts < (newest.get(deviceAuthUuid)?.ts ?? 0)) continue;
      newest.set(deviceAuthUuid, { deviceAuthUuid, lat: val.lat, long: val.long, ts });
    }
    cursor = answer.next;
  }
  return { places: [...newest.values()], isCut: cursor !== null };
}

/** Devices that are too near to each other to be told apart, and where they are drawn, px. */
export type Spot = { x: number; y: number; places: Placed[] };

type Size = { width: number; height: number };

/** As large as a finger needs. */
const cellPx = 44;

/** Groups devices by the cells of a grid; what lies outside the map is left out. Left to right. */
export function spotsOf(
  places: readonly Placed[],
  project: (place: Placed) => [number, number] | null,
  { width, height }: Size,
): Spot[] {
  const cells = new Map<string, Spot>();
  for (const place of places) {
    const [x, y] = project(place) ?? [-1, -1];
    if (x < 0 || y < 0 || x > width || y > height) continue;
    const key = `${Math.floor(x / cellPx)}/${Math.floor(y / cellPx)}`;
    const spot = cells.get(key) ?? { x: 0, y: 0, places: [] };
    spot.places.push(place);
    // In their middle.
    spot.x += (x - spot.x) / spot.places.length;
    spot.y += (y - spot.y) / spot.places.length;
    cells.set(key, spot);
  }
  return [...cells.values()].toSorted((one, other) => one.x - other.x);
}
