import { useState } from 'preact/hooks';
import { type Query, useQuery } from '../../../api/cache.ts';
import { getConfiguration, listDevices, sensesOf } from '../../../api/devices.ts';
import { ApiError } from '../../../api/request.ts';
import type { Sense } from '../../../api/types.ts';
import { queryOf, setQuery } from '../../../app/router.ts';
import { accountOf } from '../../../app/session.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Answered } from '../../../parts/panel.tsx';
import { t } from '../../../text/t.ts';
import { daysLater } from '../../../text/time.ts';
import type { OtherLine } from './plot.tsx';
import { loadSeries, type Range } from './series.ts';
import type { Point, Series } from './points.ts';

/** What charts are compared with: this device at an earlier time, or another device. */
export type Beside = {
  uuid: string;
  name: string;
  tone: number;
  isBefore: boolean;
  series: readonly Series[];
  /** How its senses are configured, by sId. */
  senses: ReadonlyMap<string, Sense> | null;
};

/** How many days earlier. */
const earlier = { '1d': 1, '7d': 7 } as const;
type Earlier = keyof typeof earlier;
const isEarlier = (text: string): text is Earlier => text in earlier;

/** As many as have a colour of their own. */
const mostDevices = 3;

const devicesOf = (): string[] =>
  [...new Set(queryOf('with').split(',').filter(Boolean))].slice(0, mostDevices);

const everyMs = 60_000;

/** What the URL asks to compare with, over the same range. `read`: the range of now. */
export function useBeside(
  uuid: string,
  key: string,
  { read, isLive }: { read: () => Range; isLive: boolean },
): Query<readonly Beside[]> {
  const [before, others] = [queryOf('compare'), devicesOf()];
  return useQuery(
    `beside/${key}/${before}/${others.join()}`,
    (signal) =>
      Promise.all([
        ...(isEarlier(before) ? [loadBefore(uuid, before, read(), signal)] : []),
        ...others.map((other, tone) => loadOther(other, tone, read(), signal)),
      ]),
    isLive ? { everyMs } : {},
  );
}

/** By the clock on the wall: eight o'clock is compared with eight o'clock, also where clocks changed in between. */
async function loadBefore(uuid: string, which: Earlier, range: Range, signal: AbortSignal) {
  const days = earlier[which];
  const zone = accountOf()?.timeZone ?? 'UTC';
  const [start, end] = [range.start, range.end].map((ts) => daysLater(ts, zone, -days));
  const span = { start: start ?? range.start, end: end ?? range.end };
  const all = await loadSeries(uuid, span, signal);
  const series = all.map((each) => ({ ...each, points: movedBy(days, each.points, zone) }));
  const name = t(`chart.before.${which}`);
  return { uuid, name, tone: 0, isBefore: true, series, senses: null };
}

/** In order: an hour that a clock shows twice lies on one that it shows once. */
const movedBy = (days: number, points: readonly Point[], zone: string): Point[] =>
  points
    .map((point) => ({ ...point, ts: daysLater(point.ts, zone, days) }))
    .toSorted((one, other) => one.ts - other.ts);

/** An address may name a device that was removed since: it has no lines, and the others keep theirs. */
async function loadOther(uuid: string, tone: number, range: Range, signal: AbortSignal) {
  const which = { uuid, tone, isBefore: false };
  try {
    const [configuration, series] = await Promise.all([
      getConfiguration(uuid, signal),
      loadSeries(uuid, range, signal),
    ]);
    const name = configuration.device.name || t('fleet.unnamed');
    return { ...which, name, series, senses: sensesOf(configuration) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    return { ...which, name: t('chart.goneDevice'), series: [], senses: new Map<string, Sense>() };
  }
}

/** The lines beside those of a sense: of the same identifier, and of the same unit. */
export function linesBeside(
  all: readonly Beside[],
  sId: string,
  sense: Sense | undefined,
): OtherLine[] {
  return all.flatMap(({ name, tone, isBefore, series, senses }) => {
    const found = series.find((each) => each.sId === sId);
    const isSame = senses === null || senses.get(sId)?.unit === sense?.unit;
    return found && isSame ? [{ name, tone, isBefore, series: found }] : [];
  });
}

type ToolsProps = { uuid: string; isBucketed: boolean; beside: readonly Beside[] };

/** What else the charts show: the mean, an earlier time, other devices. */
export function ChartTools({ uuid, isBucketed, beside }: ToolsProps) {
  const [isAdding, setIsAdding] = useState(false);
  const others = devicesOf();
  const choose = (uuids: readonly string[]) => setQuery({ with: uuids.join(',') });
  return (
    <div class="chart-tools">
      {isBucketed && (
        <button
          type="button"
          class="range"
          aria-pressed={hasMean()}
          onClick={() => setQuery({ mean: hasMean() ? '' : '1' }, { replace: true })}
        >
          {t('device.mean')}
        </button>
      )}
      <select
        class="chart-compare"
        aria-label={t('chart.compare')}
        value={queryOf('compare')}
        onChange={({ currentTarget }) => setQuery({ compare: currentTarget.value })}
      >
        <option value="">{t('chart.compareNone')}</option>
        <option value="1d">{t('chart.before.1d')}</option>
        <option value="7d">{t('chart.before.7d')}</option>
      </select>
      {beside
        .filter(({ isBefore }) => !isBefore)
        .map(({ name, tone }) => (
          <button
            key={tone}
            type="button"
            class={`range chart-other legend-${tone}`}
            aria-label={t('chart.dropDevice', { name })}
            onClick={() => choose(others.filter((_, place) => place !== tone))}
          >
            {name} ×
          </button>
        ))}
      {others.length < mostDevices && (
        <button type="button" class="range" onClick={() => setIsAdding(true)}>
          + {t('chart.addDevice')}
        </button>
      )}
      {isAdding && (
        <FindDevice
          without={[uuid, ...others]}
          onClose={() => setIsAdding(false)}
          onFound={(found) => {
            setIsAdding(false);
            choose([...others, found]);
          }}
        />
      )}
    </div>
  );
}

export const hasMean = (): boolean => queryOf('mean') === '1';

type FindProps = {
  without: readonly string[];
  onClose: () => void;
  onFound: (uuid: string) => void;
};

/** Finds a device by its name, serial number or identifier. */
function FindDevice({ without, onClose, onFound }: FindProps) {
  const [search, setSearch] = useState('');
  const query = useQuery(`find/${search}`, async (signal) => {
    const { body } = await listDevices({ search, sort: 'name' }, signal);
    return body.devices.filter(({ uuid }) => !without.includes(uuid)).slice(0, 8);
  });
  return (
    <Dialog title={t('chart.addDevice')} onClose={onClose}>
      <div class="form">
        <label class="field">
          <span>{t('fleet.search')}</span>
          <input
            type="search"
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) => setSearch(currentTarget.value.trim())}
          />
        </label>
        <Answered query={query}>
          {(devices) => (
            <ul class="found">
              {devices.map(({ uuid, name }) => (
                <li key={uuid}>
                  <button type="button" class="place" onClick={() => onFound(uuid)}>
                    {name || t('fleet.unnamed')}
                  </button>
                </li>
              ))}
              {devices.length === 0 && <li class="muted">{t('fleet.noMatch')}</li>}
            </ul>
          )}
        </Answered>
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
