import { clock } from '../app/now.ts';
import { formatAgo, formatFullTime, formatNumber, formatTime } from '../text/format.ts';
import { t } from '../text/t.ts';
import { Icon } from './icon.tsx';
import { Link } from './link.tsx';
import { type Seen, type Standing, standingOf } from './presence.ts';

/** Uses shape and words, never colour alone. `isFull`: says when it was last seen, if nothing beside it does. */
export function Status({ isFull = false, ...seen }: Seen & { isFull?: boolean }) {
  const standing = standingOf(seen, clock.value);
  const { lastSeenTs } = seen;
  const isAway = !['online', 'no-value', 'sends-nothing', 'never'].includes(standing);
  return (
    <span class={`status status-${standing}`} title={lastSeenTs ? formatFullTime(lastSeenTs) : ''}>
      {wordOf(seen, standing)}
      {isFull && isAway && lastSeenTs !== null && (
        <> · {t('status.seen', { time: formatAgo(lastSeenTs) })}</>
      )}
    </span>
  );
}

function wordOf({ valueTs, transport }: Seen, standing: Standing): string {
  if (standing === 'sends-nothing')
    return t('status.sends-nothing', { time: formatAgo(valueTs ?? 0) });
  if (standing === 'to-send') return t(transport === 'bridge' ? 'status.bridge' : 'status.to-send');
  return t(`status.${standing}`);
}

type MutedProps = { mutedUntilTs?: number | undefined; mutedReason?: string | undefined };

/** Until when a device is muted, and why if a reason was given; nothing if it is not muted. */
export function Muted({ mutedUntilTs, mutedReason }: MutedProps) {
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
