import { useEffect, useRef, useState } from 'preact/hooks';
import { reload, revise, useQuery, type Query } from '../../../api/cache.ts';
import { clock, now } from '../../../app/now.ts';
import { onStream } from '../../../app/stream.ts';
import { happensTo } from './happens-to.ts';
import { loadHappened, type Happened } from './happened.ts';
import { readRange, type Range } from './range.ts';
import type { Series } from './point.ts';
import { append, loadSeries } from './series.ts';

/** What is appended meanwhile says nothing of what came late. */
const everyMs = 60_000;

export type HistoryQueries = {
  range: Range;
  series: Query<readonly Series[]>;
  happened: Query<Happened>;
};

/** What the range in the URL holds. One that ends now moves on, and gets what is heard. */
export function useHistory(uuid: string): HistoryQueries {
  const [heardTs, setHeardTs] = useState(0);
  const range = readRange(Math.max(clock.value, heardTs));
  const isLive = range.name !== null;
  const key = `${uuid}/${range.name ?? `${range.start}-${range.end}`}`;
  const options = isLive ? { everyMs } : {};
  const series = useQuery(
    `series/${key}`,
    (signal) => loadSeries(uuid, readRange(now()), signal),
    options,
  );
  const happened = useQuery(
    `happened/${key}`,
    (signal) => loadHappened(uuid, readRange(now()), signal),
    options,
  );
  useEffect(() => {
    if (!isLive) return undefined;
    return onStream((message) => {
      if (happensTo(uuid, message)) reload(`happened/${key}`);
      if (message.kind !== 'values') return;
      const values = message.values.filter(({ deviceAuthUuid }) => deviceAuthUuid === uuid);
      if (values.length === 0) return;
      const { start } = readRange(now());
      revise<readonly Series[]>(`series/${key}`, (all) => append(all, values, { start }));
      setHeardTs(now());
    });
  }, [key]);
  return { range, series: useKept(uuid, series), happened: useKept(uuid, happened) };
}

/** Shows the answer before until there is another one: of this device. */
function useKept<T>(uuid: string, query: Query<T>): Query<T> {
  const kept = useRef<{ uuid: string; data: T }>(null);
  if (query.data !== undefined) kept.current = { uuid, data: query.data };
  if (query.data !== undefined || kept.current?.uuid !== uuid) return query;
  return { ...query, data: kept.current.data };
}
