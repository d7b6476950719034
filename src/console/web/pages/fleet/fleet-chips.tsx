import type { DeviceList } from '../../api/types.ts';
import { here, queryOf } from '../../app/router.ts';
import { Chips, type Chip } from '../../parts/chips.tsx';
import { t } from '../../text/t.ts';

/** How many devices there are of each kind; each is a filter. */
export function FleetChips({ counts }: { counts: DeviceList['counts'] }) {
  const online = queryOf('online');
  const profile = queryOf('profile');
  const alarm = queryOf('alarm');
  const chip = (label: string, filter: Record<string, string>, count?: number): Chip => ({
    label,
    count,
    to: linkTo(filter),
    isOn:
      (filter['online'] ?? '') === online &&
      (filter['profile'] ?? '') === profile &&
      (filter['alarm'] ?? '') === alarm,
  });
  const chips = [
    chip(t('fleet.all'), {}, counts?.all),
    chip(t('fleet.inAlarm'), { alarm: 'open' }, counts?.alarm),
    chip(t('fleet.online'), { online: 'true' }, counts?.online),
    chip(t('fleet.offline'), { online: 'false' }, counts?.offline),
    chip(t('fleet.pending'), { profile: 'pending' }, counts?.pendingProfile),
  ];
  return <Chips label={t('fleet.filter')} chips={chips} />;
}

/** Keeps what is searched for and how it is sorted. */
function linkTo(filter: Record<string, string>): string {
  const query = new URLSearchParams(here.value.query);
  for (const name of ['online', 'profile', 'alarm', 'cursor']) query.delete(name);
  for (const [name, value] of Object.entries(filter)) query.set(name, value);
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
