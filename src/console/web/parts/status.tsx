import type { ListedDevice } from '../api/devices.ts';
import { clock } from '../app/now.ts';
import { formatAgo, formatFullTime, formatNumber, formatTime } from '../text/format.ts';
import { t } from '../text/t.ts';
import { Icon } from './icon.tsx';
import { Link } from './link.tsx';

type Seen = Pick<ListedDevice, 'connected' | 'presence' | 'lastSeenTs' | 'transport'> & {
  /** When its newest value was measured; null: it has none; absent: not known. */
  valueTs?: number | null | undefined;
};

/** A connected device that measured nothing for longer says so. */
const silentMs = 3_600_000;

/** Uses shape and words, never colour alone. `isFull`: says when it was last seen, if nothing beside it does. */
export function Status({ isFull = false, ...seen }: Seen & { isFull?: boolean }) {
  const state = stateOf(seen);
  const { lastSeenTs } = seen;
  if (state !== 'intermittent' || !(isFull || lastSeenTs === null))
    return <span class={`status status-${state}`}>{wordOf(seen)}</span>;
  return (
    <span class="status status-intermittent" title={lastSeenTs ? formatFullTime(lastSeenTs) : ''}>
      {wordOf(seen)}
      {' · '}
      {lastSeenTs === null
        ? t('status.neverSeen')
        : t('status.seen', { time: formatAgo(lastSeenTs) })}
    </span>
  );
}

function wordOf(seen: Seen): string {
  const state = stateOf(seen);
  const { valueTs } = seen;
  if (state === 'online' && valueTs === null) return t('status.onlineNoValue');
  if (
    state === 'online' &&
    valueTs !== undefined &&
    valueTs !== null &&
    valueTs < clock.value - silentMs
  )
    return t('status.onlineSilent', { time: formatAgo(valueTs) });
  if (state !== 'intermittent') return t(`status.${state}`);
  return t(seen.transport === 'bridge' ? 'status.bridge' : 'status.http');
}

/** Nobody knows whether an intermittent device is there; when it was last heard says more. */
function stateOf({ connected, presence, lastSeenTs }: Seen) {
  if (connected) return 'online';
  if (presence === 'intermittent') return 'intermittent';
  return lastSeenTs === null ? 'never' : 'offline';
}

type Quiet = { mutedUntilTs?: number | undefined; mutedReason?: string | undefined };

/** Until when a device is muted, and why if a reason was given; nothing if it is not muted. */
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

/** How long ago; the tooltip has the exact time. */
export function Ago({ ts }: { ts: number | null }) {
  if (ts === null) return <span class="muted">{t('common.never')}</span>;
  const full = formatFullTime(ts);
  return (
    <span class="time" title={full}>
      {formatAgo(ts)}
    </span>
  );
}

type Chip = {
  label: string;
  to: string;
  isOn: boolean;
  count?: number | undefined;
};

/** Filters as links: each is in the URL. */
export function Chips({ label, chips }: { label: string; chips: Chip[] }) {
  return (
    <nav class="chips" aria-label={label}>
      {chips.map(({ label, to, isOn, count }) => (
        <Link key={label} to={to} class="chip" aria-current={isOn ? 'true' : undefined}>
          {label}
          {count !== undefined && <span class="chip-count">{formatNumber(count)}</span>}
        </Link>
      ))}
    </nav>
  );
}
