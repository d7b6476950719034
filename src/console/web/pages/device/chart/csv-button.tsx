import { useState } from 'preact/hooks';
import { callLines } from '../../../api/request.ts';
import { accountOf } from '../../../app/session.ts';
import { describeProblem, say } from '../../../parts/panel.tsx';
import { formatNumber } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import { dayOf } from '../../../text/time.ts';
import { type Measured, type Named, toCsv } from './csv.ts';
import type { Span } from './points.ts';

type CsvButtonProps = {
  /** The device of the page, and those that it is compared with. */
  devices: readonly [Named, ...Named[]];
  sIds: readonly string[];
  span: Span;
};

/** About a year of a value a minute: what a browser holds, and a spreadsheet opens. */
const mostRows = 500_000;

/** Saves what was measured, each value as it was sent. */
export function CsvButton({ devices, sIds, span }: CsvButtonProps) {
  const [isBusy, setIsBusy] = useState(false);
  const zone = accountOf()?.timeZone ?? 'UTC';
  const save = async () => {
    setIsBusy(true);
    try {
      const query = {
        devices: devices.map(({ uuid }) => uuid).join(','),
        senses: sIds.join(','),
        start: Math.floor(span.start),
        end: Math.ceil(span.end),
      };
      const rows = await callLines<Measured>('/v2/measurements', { query }, mostRows + 1);
      const isCut = rows.length > mostRows;
      download(toCsv(rows.slice(0, mostRows), devices, zone), fileName());
      if (isCut) say(t('chart.csvCut', { most: formatNumber(mostRows) }));
    } catch (error) {
      say(describeProblem(error));
    }
    setIsBusy(false);
  };
  const fileName = () => {
    const [{ name, uuid }] = devices;
    const of = name.replaceAll(/[^\p{L}\p{N} ._-]+/gu, '_').trim() || uuid;
    return `${of} ${dayOf(span.start, zone)} ${dayOf(span.end, zone)}.csv`;
  };
  return (
    <button type="button" class="link" disabled={isBusy} onClick={() => void save()}>
      {t('chart.csv')}
    </button>
  );
}

function download(text: string, name: string): void {
  // A spreadsheet takes a file without this mark for one of another alphabet.
  const url = URL.createObjectURL(new Blob(['\ufeff', text], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The download reads the URL after the click, so revoke it later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
