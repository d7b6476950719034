import { computed, effect, signal } from '@preact/signals';
import { listAlarms } from '../api/alarms.ts';
import type { ListedAlarm } from '../api/types.ts';
import { accountOf } from './session.ts';
import { onStream } from './stream.ts';
import { throttle } from './throttle.ts';

/** The newest open alarms, at most 100. */
export const openList = signal<ListedAlarm[]>([]);

export const openAlarms = computed(() => openList.value.length);

/** Reads them again: what a person did is seen at once, whatever the stream does. */
export async function readOpenAlarms(): Promise<void> {
  const uuid = accountOf()?.accountAuthUuid;
  // The page that shows alarms says what went wrong.
  const answer = await listAlarms({ state: 'open', limit: 100 }).catch(() => null);
  // Of somebody who has left meanwhile nothing is kept.
  if (answer && accountOf()?.accountAuthUuid === uuid) openList.value = answer.body.alarms;
}

/** A broken fleet changes many alarms at once: they are not read for each. */
const readSoon = throttle(() => void readOpenAlarms(), 1_000);

effect(() => {
  const uuid = accountOf()?.accountAuthUuid;
  openList.value = [];
  if (uuid === undefined) return undefined;
  void readOpenAlarms();
  return onStream(({ kind }) => {
    if (kind === 'alarm' || kind === 'started') readSoon();
  });
});
