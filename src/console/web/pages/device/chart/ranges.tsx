import { setQuery } from '../../../app/router.ts';
import { formatTime } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import { ranges, scaleSpan, showSpan, type Range, type RangeName } from './range.ts';

/** Lengths up to now, and how far it is zoomed into. */
export function Ranges({ range }: { range: Range }) {
  const choose = (name: RangeName) => setQuery({ range: name, from: '', to: '' });
  const { start, end } = range;
  return (
    <div class="ranges" role="group" aria-label={t('device.range')}>
      {range.name === null && (
        <p class="zoomed">
          {t('device.zoomed', { from: formatTime(start), to: formatTime(end) })}
          <button type="button" class="link" onClick={() => setQuery({ from: '', to: '' })}>
            {t('device.zoomOut')}
          </button>
        </p>
      )}
      {(Object.keys(ranges) as RangeName[]).map((name) => (
        <button
          key={name}
          type="button"
          class="range"
          aria-pressed={range.name === name}
          title={t(`device.range.${name}`)}
          onClick={() => choose(name)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** For who has no wheel, no keys and no second finger. */
export function Zooms({ range }: { range: Range }) {
  return (
    <div class="zooms">
      <button
        type="button"
        class="range"
        aria-label={t('chart.zoomIn')}
        title={t('chart.zoomIn')}
        onClick={() => showSpan(scaleSpan(range, 0.5))}
      >
        +
      </button>
      <button
        type="button"
        class="range"
        aria-label={t('chart.zoomOut')}
        title={t('chart.zoomOut')}
        onClick={() => showSpan(scaleSpan(range, 2))}
      >
        −
      </button>
    </div>
  );
}
