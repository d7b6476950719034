import { formatAgo, formatFullTime } from '../text/format.ts';
import { t } from '../text/t.ts';

type Seen = { connected: boolean; lastSeenTs: number | null };

/** Shape and word, never colour alone. */
export function Status({ connected, lastSeenTs }: Seen) {
  const state = connected ? 'online' : lastSeenTs === null ? 'never' : 'offline';
  return <span class={`status status-${state}`}>{t(`status.${state}`)}</span>;
}

/** How long ago, with the time itself beside it. */
export function Ago({ ts }: { ts: number | null }) {
  if (ts === null) return <span class="muted">{t('common.never')}</span>;
  const full = formatFullTime(ts);
  return (
    <span class="time" title={full}>
      {formatAgo(ts)}
    </span>
  );
}
