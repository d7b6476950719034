import type { CompiledCause, LiveEvent, Profile } from '../compile.ts';
import type { CauseEvidence, CauseTime, EventEvidence } from '../runtime.ts';
import { placeKey } from './impossible.ts';
import type { Node } from './walk.ts';

/** Names a device by what decides how it goes on: two with the same name do the same from then on. */
export function keyOf(profile: Profile, { runtime, nowTs, alarms }: Node): string {
  const { puId, stId, local, global } = runtime;
  const purpose = profile.purposes.get(puId);
  let key = `${puId}/${stId}`;
  for (const [events, evidence] of [
    [purpose?.states.get(stId)?.events ?? [], local],
    [purpose?.globalEvents ?? [], global],
  ] as const)
    for (let index = 0; index < evidence.length; index++) {
      const [event, own] = [events[index], evidence[index]];
      if (event && own) key += `;${event.key}${eventKey(event, own, nowTs)}`;
    }
  if (alarms.length === 0) return key;
  const open = alarms.map(
    ({ event, until }) => `!${event.key}${until ? `>${placeKey(until)}` : ''}`,
  );
  return key + open.toSorted().join('');
}

function eventKey(event: LiveEvent, own: EventEvidence, nowTs: number): string {
  let key = own.episode === 0 ? '.' : `!${event.groups ? own.episode : ''}`;
  for (let index = 0; index < event.causes.length; index++) {
    const cause = event.causes[index] as CompiledCause;
    const [window, time, lately] = [
      own.causes[index],
      own.time?.causes[index],
      own.lately?.[index],
    ];
    key += `|${window ? windowKey(cause, window) : ''}`;
    if (lately) key += `~${lately.of}:${outcomesOf(lately)}`;
    if (time) key += `@${timeKey(cause, time, nowTs)}`;
  }
  if (event.isAged && own.time?.newestT) key += `^${nowTs - own.time.newestT}`;
  return key;
}

function windowKey(cause: CompiledCause, window: CauseEvidence): string {
  const baseline = window.baseline === undefined ? '' : `b${window.baseline}`;
  if (cause.time?.forMs) return `${Math.min(window.matched, cause.needed)}${baseline}`;
  // Of outcomes in a row only the newest that agreed count.
  const outcomes = cause.slack === 0 && !window.words ? inRow(window.bits) : outcomesOf(window);
  return outcomes + baseline;
}

function inRow(bits: number): string {
  let count = 0;
  while ((bits >> count) & 1) count += 1;
  return String(count);
}

const outcomesOf = ({ bits, words, matched }: CauseEvidence): string =>
  matched === 0 ? '0' : (words ?? [bits]).map((word) => word.toString(36)).join();

function timeKey({ time: asked }: CompiledCause, time: CauseTime, nowTs: number): string {
  const { run, silence, bins, outcomeTs, lately } = time;
  const ago = (ts: number) => nowTs - ts;
  let key = '';
  if (run) {
    const { sinceT, newestT, due, isComplete } = run;
    key += `r${ago(sinceT)}:${asked?.maxAgeMs ? ago(newestT) : ''}:${due ? ago(due.ts) : ''}${isComplete ? '+' : ''}`;
  }
  if (silence) key += silence.completeTs === null ? `s${ago(silence.sinceTs)}` : 's+';
  if (bins && asked?.over) {
    const part = Math.ceil(asked.over.ms / 12);
    const at = Math.floor(nowTs / part);
    key += `o${Math.min(ago(bins.sinceT), asked.over.ms)}:${nowTs % part}`;
    for (const bin of bins.list)
      key += `,${at - bin.at}:${bin.sum}:${bin.count}:${bin.first}:${bin.last}:${bin.more.join('/')}`;
  }
  if (outcomeTs) key += `a${outcomeTs.map(ago).join()}`;
  if (lately) key += `l${lately.map(({ t, agrees }) => `${ago(t)}${agrees ? '+' : '-'}`).join()}`;
  return key;
}
