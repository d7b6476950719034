import { computed, effect, signal } from '@preact/signals';
import { listAlarms } from '../api/alarms.ts';
import type { ListedAlarm } from '../api/types.ts';
import { t } from '../text/t.ts';
import { accountOf } from './session.ts';
import { onStream } from './stream.ts';

/** The newest open alarms, at most 100. */
export const openList = signal<ListedAlarm[]>([]);

export const openAlarms = computed(() => openList.value.length);

/** Reads them again: what a person did is seen at once, whatever the stream does. */
export async function readOpenAlarms(): Promise<void> {
  const filter = { state: 'open', device: '', cursor: '', limit: 100 };
  // The page that shows alarms says what went wrong.
  const answer = await listAlarms(filter).catch(() => null);
  if (answer) openList.value = answer.body.alarms;
}

effect(() => {
  const uuid = accountOf()?.accountAuthUuid;
  openList.value = [];
  if (uuid === undefined) return undefined;
  void readOpenAlarms();
  return onStream(({ kind }) => (kind === 'alarm' || kind === 'started') && void readOpenAlarms());
});

effect(() => {
  const name = t('app.name');
  document.title = openAlarms.value > 0 ? `(${openAlarms.value}) ${name}` : name;
});
