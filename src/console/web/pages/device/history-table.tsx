import { useState } from 'preact/hooks';
import type { BucketView, Sense } from '../../api/types.ts';
import { formatFullTime, formatNumber } from '../../text/format.ts';
import { t } from '../../text/t.ts';

const rows = 200;
type HistoryTableProps = {
  label: string;
  sense: Sense | undefined;
  buckets: readonly BucketView[];
};

/** The same as the chart, for who cannot see or point at it; the newest 200 rows. */
export function HistoryTable({ label, sense, buckets }: HistoryTableProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="chart-table" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>{t('device.asTable')}</summary>
      {isOpen && (
        <div class="scroll" tabIndex={0} role="region" aria-label={label}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{t('device.time')}</th>
                <th scope="col">{t('device.least')}</th>
                <th scope="col">{t('device.mean')}</th>
                <th scope="col">{t('device.most')}</th>
              </tr>
            </thead>
            <tbody>
              {buckets.slice(0, rows).map(({ ts, min, avg, max }) => (
                <tr key={ts}>
                  <th scope="row">{formatFullTime(ts)}</th>
                  <td>{formatNumber(min, sense?.decimals)}</td>
                  <td>{formatNumber(avg, sense?.decimals)}</td>
                  <td>{formatNumber(max, sense?.decimals)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
