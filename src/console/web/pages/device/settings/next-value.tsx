import { useRef } from 'preact/hooks';
import { useLatest } from '../../../api/measurements.ts';
import type { Sense } from '../../../api/types.ts';
import { nameOfSense } from '../../../parts/senses.ts';
import { formatValue } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';

type NextValueProps = { uuid: string; senses: ReadonlyMap<string, Sense> };

/** After a change: whether what the device sends next is stored. */
export function NextValue({ uuid, senses }: NextValueProps) {
  const { data: latest } = useLatest([uuid]);
  const before = useRef<ReadonlyMap<string, number> | null>(null);
  if (before.current === null && latest)
    before.current = new Map(latest.map(({ sId, ts }) => [sId, ts]));
  const stored = (latest ?? []).filter(({ sId, ts }) => before.current?.get(sId) !== ts);
  const said = stored.map(({ sId, val }) => {
    const sense = senses.get(sId);
    return `${nameOfSense(sId, sense)} ${formatValue(val, sense)}`;
  });
  return (
    <p role="status" class={said.length === 0 ? 'waiting' : 'form-done'}>
      {said.length === 0 ? t('settings.next') : t('settings.stored', { values: said.join(', ') })}
    </p>
  );
}
