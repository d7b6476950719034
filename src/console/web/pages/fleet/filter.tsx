import type { DeviceList } from '../../api/types.ts';
import { here, queryOf } from '../../app/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { formatNumber } from '../../text/format.ts';
import { type Key, t } from '../../text/t.ts';

type Counts = NonNullable<DeviceList['counts']>;
type Chip = {
  key: Key;
  filter: Record<string, string>;
  count: keyof Counts;
  isBad?: boolean;
  isRare?: boolean;
};

const chips: Chip[] = [
  { key: 'fleet.all', filter: {}, count: 'all' },
  { key: 'fleet.inAlarm', filter: { alarm: 'open' }, count: 'alarm', isBad: true },
  { key: 'fleet.refused', filter: { refused: 'true' }, count: 'refused', isBad: true },
  { key: 'fleet.online', filter: { presence: 'online' }, count: 'online' },
  { key: 'fleet.offline', filter: { presence: 'offline' }, count: 'offline' },
  {
    key: 'fleet.intermittent',
    filter: { presence: 'intermittent' },
    count: 'intermittent',
    isRare: true,
  },
  { key: 'fleet.muted', filter: { muted: 'true' }, count: 'muted' },
  { key: 'fleet.pending', filter: { profile: 'pending' }, count: 'pendingProfile' },
];
const names = ['presence', 'online', 'profile', 'alarm', 'refused', 'muted'];

/** How many devices there are of each kind; each is a filter, and its state is in the URL. */
export function FleetChips({ counts }: { counts: Counts | undefined }) {
  return (
    <nav class="chips" aria-label={t('fleet.filter')}>
      {chips.map(({ key, filter, count, isBad, isRare }) => {
        const number = counts?.[count];
        const isOn = names.every((name) => (filter[name] ?? '') === queryOf(name));
        // Most accounts have no such device, and nobody looks for one there.
        if (isRare && !number && !isOn) return null;
        return (
          <Link
            key={key}
            to={linkTo(filter)}
            class={isBad && number ? 'chip chip-bad' : 'chip'}
            aria-current={isOn ? 'true' : undefined}
          >
            {isBad && number ? <Icon name="warn" /> : null}
            {t(key as 'fleet.all')}
            {number !== undefined && <span class="chip-count">{formatNumber(number)}</span>}
          </Link>
        );
      })}
    </nav>
  );
}

/** Keeps what is searched for, the label, and how it is sorted. */
function linkTo(filter: Record<string, string>): string {
  const query = new URLSearchParams(here.value.query);
  for (const name of [...names, 'cursor', 'from']) query.delete(name);
  for (const [name, value] of Object.entries(filter)) query.set(name, value);
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
