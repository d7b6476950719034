import type { Sense } from '../../../api/types.ts';
import { t } from '../../../text/t.ts';
import { toCsv } from './csv.ts';
import { dateOf } from './date-of.ts';
import type { Span } from './span.ts';
import type { Series } from './point.ts';

type CsvButtonProps = {
  uuid: string;
  series: readonly Series[];
  senses: ReadonlyMap<string, Sense>;
  span: Span;
};

/** Saves what is drawn. */
export function CsvButton({ uuid, series, senses, span }: CsvButtonProps) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([toCsv(series, senses)], { type: 'text/csv' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${uuid}_${dayOf(span.start)}_${dayOf(span.end)}.csv`;
    link.click();
    // Once it is taken: a click begins a download that reads it later.
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return (
    <button type="button" class="link" onClick={save}>
      {t('chart.csv')}
    </button>
  );
}

const dayOf = (ts: number) => dateOf(ts).toISOString().slice(0, 10);
