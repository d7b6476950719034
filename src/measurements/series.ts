import type { Sql } from '../db/sql.ts';

/** What one sense of one device measures. */
export type Series = { deviceId: number; sId: string };

/** The numbers of series that are in the database, as far as there is room to remember them. */
export type KnownSeries = {
  get(series: Series): number | undefined;
  set(series: Series, id: number): void;
  clear(): void;
};

/** Cleared when it is full: a series that is not here costs a query, nothing more. */
export function createKnownSeries(maxSeries: number = 200_000): KnownSeries {
  const devices = new Map<number, Map<string, number>>();
  let size = 0;
  const clear = () => {
    devices.clear();
    size = 0;
  };
  return {
    get: ({ deviceId, sId }) => devices.get(deviceId)?.get(sId),
    set({ deviceId, sId }, id) {
      if (size >= maxSeries) clear();
      const senses = devices.get(deviceId) ?? new Map<string, number>();
      if (!senses.has(sId)) size += 1;
      devices.set(deviceId, senses.set(sId, id));
    },
    clear,
  };
}

type SeriesRow = { id: number; device_id: number; s_id: string };

/** The numbers of all these series, in their order; undefined where one of them is not known. */
export function recallSeries(wanted: readonly Series[], known: KnownSeries): number[] | undefined {
  const ids: number[] = [];
  for (const series of wanted) {
    const id = known.get(series);
    if (id === undefined) return undefined;
    ids.push(id);
  }
  return ids;
}

/**
 * The same of series that may be new: looks for those that are not known, and adds what is not there.
 * Once a transaction: what it adds may yet be rolled back and is not remembered, what it finds is.
 */
export async function findSeries(
  tx: Sql,
  wanted: readonly Series[],
  known: KnownSeries,
): Promise<number[]> {
  const ids = new Map<string, number>();
  const unknown = new Map<string, Series>();
  for (const series of wanted) {
    const id = known.get(series);
    if (id === undefined) unknown.set(nameOf(series), series);
    else ids.set(nameOf(series), id);
  }
  for (const row of await selectSeries(tx, [...unknown.values()])) {
    const series = { deviceId: row.device_id, sId: row.s_id };
    known.set(series, row.id);
    ids.set(nameOf(series), row.id);
    unknown.delete(nameOf(series));
  }
  for (const row of await insertSeries(tx, [...unknown.values()])) {
    ids.set(nameOf({ deviceId: row.device_id, sId: row.s_id }), row.id);
  }
  return wanted.map((series) => ids.get(nameOf(series)) as number);
}

/** The numbers of these series, in their order, as far as there are any: adds and remembers nothing. */
export async function lookUpSeries(
  tx: Sql,
  wanted: readonly Series[],
): Promise<(number | undefined)[]> {
  const unique = new Map(wanted.map((series) => [nameOf(series), series]));
  const rows = await selectSeries(tx, [...unique.values()]);
  const ids = new Map(
    rows.map(({ id, device_id: deviceId, s_id: sId }) => [nameOf({ deviceId, sId }), id]),
  );
  return wanted.map((series) => ids.get(nameOf(series)));
}

const nameOf = ({ deviceId, sId }: Series) => `${deviceId} ${sId}`;

async function selectSeries(tx: Sql, wanted: Series[]): Promise<SeriesRow[]> {
  if (wanted.length === 0) return [];
  const { rows } = await tx.query<SeriesRow>({
    name: 'select-series',
    text: `
      select id, device_id, s_id
        from unnest($1::bigint[], $2::text[]) as wanted (device_id, s_id)
        join series using (device_id, s_id)`,
    values: [wanted.map(({ deviceId }) => deviceId), wanted.map(({ sId }) => sId)],
  });
  return rows;
}

async function insertSeries(tx: Sql, wanted: Series[]): Promise<SeriesRow[]> {
  if (wanted.length === 0) return [];
  const { rows } = await tx.query<SeriesRow>({
    name: 'insert-series',
    // In order, so that two transactions that add the same series wait for each other in one direction.
    // What another has added since the look is given too: only what is updated is returned.
    text: `
      insert into series (device_id, s_id)
      select device_id, s_id
        from unnest($1::bigint[], $2::text[]) as m (device_id, s_id)
       order by device_id, s_id
          on conflict (device_id, s_id) do update set s_id = excluded.s_id
      returning id, device_id, s_id`,
    values: [wanted.map(({ deviceId }) => deviceId), wanted.map(({ sId }) => sId)],
  });
  return rows;
}
