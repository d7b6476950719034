import type { FleetFilter } from '../../api/devices.ts';
import { t } from '../../text/t.ts';

/** What a filter lets through, in words. */
export function describeFilter({ search, label, ...of }: FleetFilter): string {
  const parts = [
    search !== '' && `“${search}”`,
    label !== '' && `${t('fleet.label')}: ${label}`,
    of.alarm !== '' && t('fleet.inAlarm'),
    of.refused !== '' && t('fleet.refused'),
    of.muted !== '' && t('fleet.muted'),
    of.online === 'true' && t('fleet.online'),
    of.online === 'false' && t('fleet.offline'),
    isPresence(of.presence) && t(`fleet.${of.presence}`),
    of.profile !== '' && t('fleet.pending'),
  ].filter((part) => part !== false);
  return parts.length === 0 ? t('fleet.every') : t('fleet.everyWith', { filter: parts.join(', ') });
}

const isPresence = (text: string): text is 'online' | 'offline' | 'intermittent' =>
  ['online', 'offline', 'intermittent'].includes(text);
