import { formatAgo, formatFullTime, formatTime } from '../text/format.ts';
import { t } from '../text/t.ts';
import { Icon } from './icon.tsx';

type Seen = { connected: boolean; lastSeenTs: number | null; protocol?: string | undefined };

/** Shape and word, never colour alone. */
export function Status(seen: Seen) {
  const state = stateOf(seen);
  return <span class={`status status-${state}`}>{t(`status.${state}`)}</span>;
}

/** Of a device over HTTP nobody knows whether it is there: when it was heard last says more. */
function stateOf({ connected, lastSeenTs, protocol }: Seen) {
  if (connected) return 'online';
  if (protocol === 'http' || protocol === 'https') return 'http';
  return lastSeenTs === null ? 'never' : 'offline';
}

type Quiet = { mutedUntilTs?: number | undefined; mutedReason?: string | undefined };

/** Until when nobody is told of a device, and why where that was said; nothing where it is not muted. */
export function Muted({ mutedUntilTs, mutedReason }: Quiet) {
  if (mutedUntilTs === undefined) return null;
  const until = t('status.muted', { time: formatTime(mutedUntilTs) });
  return (
    <span class="status status-muted" title={mutedReason ?? formatFullTime(mutedUntilTs)}>
      <Icon name="quiet" />
      <span class="status-text">
        {mutedReason === undefined ? until : `${until}: ${mutedReason}`}
      </span>
    </span>
  );
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
