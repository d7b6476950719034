import { useRef } from 'preact/hooks';
import { useQuery } from '../../../api/cache.ts';
import { listRejections, type Rejection } from '../../../api/devices.ts';
import { useLatest } from '../../../api/measurements.ts';
import type { Sense } from '../../../api/types.ts';
import { describeRejection } from '../../../parts/describe-rejection.ts';
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
  const refused = useNewRejection(uuid);
  const stored = (latest ?? []).filter(({ sId, ts }) => before.current?.get(sId) !== ts);
  const said = stored.map(({ sId, val }) => {
    const sense = senses.get(sId);
    return `${nameOfSense(sId, sense)} ${formatValue(val, sense)}`;
  });
  if (said.length === 0 && refused)
    return (
      <p role="status" class="form-error">
        {t('settings.refused', { why: describeRejection(refused, senses) })}
      </p>
    );
  return (
    <p role="status" class={said.length === 0 ? 'waiting' : 'form-done'}>
      {said.length === 0 ? t('settings.next') : t('settings.stored', { values: said.join(', ') })}
    </p>
  );
}

/** The newest message that was refused since this is on the screen. */
function useNewRejection(uuid: string): Rejection | undefined {
  const { data: rejections } = useQuery(
    `rejections/${uuid}`,
    (signal) => listRejections(uuid, signal),
    { everyMs: 2_000 },
  );
  const beforeTs = useRef<number | null>(null);
  const newestTs = Math.max(0, ...(rejections ?? []).map(({ timestamp }) => timestamp));
  if (beforeTs.current === null && rejections) beforeTs.current = newestTs;
  const isNew = beforeTs.current !== null && newestTs > beforeTs.current;
  return isNew ? rejections?.find(({ timestamp }) => timestamp === newestTs) : undefined;
}
