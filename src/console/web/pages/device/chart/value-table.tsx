import { useState } from 'preact/hooks';
import type { Sense } from '../../../api/types.ts';
import { accountOf } from '../../../app/session.ts';
import { formatNumber } from '../../../text/format.ts';
import { locale, t } from '../../../text/t.ts';
import type { Series } from './points.ts';

const mostRows = 200;
type ValueTableProps = { label: string; sense: Sense | undefined; series: Series };

/** The chart as a table, for people who cannot see or point at it: the newest rows. The CSV file has each value. */
export function ValueTable(props: ValueTableProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="chart-table" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>{t('device.asTable')}</summary>
      {isOpen && <Rows {...props} />}
    </details>
  );
}

function Rows({ label, sense, series: { points, widthMs } }: ValueTableProps) {
  const time = createTimeFormat();
  const columns = widthMs === 0 ? (['avg'] as const) : (['min', 'avg', 'max'] as const);
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={label}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{t('device.time')}</th>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {widthMs === 0 ? t('chart.value') : t(headOf[column])}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {points
              .slice(-mostRows)
              .toReversed()
              .map((point) => (
                <tr key={point.ts}>
                  <th scope="row">{time(point.ts)}</th>
                  {columns.map((column) => (
                    <td key={column}>{formatNumber(point[column], sense?.decimals)}</td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
      {points.length > mostRows && (
        <p class="fine">
          {t('chart.tableCut', { most: mostRows, all: formatNumber(points.length) })}
        </p>
      )}
    </>
  );
}

const headOf = { min: 'device.least', avg: 'device.mean', max: 'device.most' } as const;

/** For many rows: making a format takes longer than using it a hundred times. */
function createTimeFormat(): (ts: number) => string {
  const format = new Intl.DateTimeFormat(locale(), {
    timeZone: accountOf()?.timeZone,
    dateStyle: 'medium',
    timeStyle: 'medium',
  });
  return (ts) => format.format(ts);
}
