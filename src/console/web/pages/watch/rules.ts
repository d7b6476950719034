import type { Purpose, Sense } from '../../api/types.ts';
import { formatTyped } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { nameOfSense } from '../../api/devices.ts';
import { kindOf } from '../device/chart/points.ts';

/** What somebody is notified of, of one sense. An absent member asks for nothing. */
export type SenseRules = {
  above?: number | undefined;
  below?: number | undefined;
  /** How far behind a limit a value must be before the alarm is over. Of one sense of a device at most. */
  back?: number | undefined;
  /** How long it must be beyond a limit, or switched on or off, first. 0: the first value counts. */
  forMs: number;
  /** Of a switch: the value to tell of, 0 or 1. */
  on?: number | undefined;
  /** By how much it rises or falls within `withinMs`; both are positive. */
  rise?: number | undefined;
  fall?: number | undefined;
  withinMs: number;
};

export type Rules = {
  /** By sId. */
  limits: Readonly<Record<string, SenseRules>>;
  /** 0: silence is ignored. */
  silentMs: number;
  /** How long an alarm stays open after the value is back: it may cross the limit again. */
  keepMs: number;
  severity: Severity;
};

export const severities = ['info', 'warning', 'critical'] as const;
type Severity = (typeof severities)[number];

export const noLimit: SenseRules = { forMs: 0, withinMs: 3_600_000 };
export const noRules: Rules = { limits: {}, silentMs: 0, keepMs: 300_000, severity: 'warning' };

type State = Purpose['states'][number];
type PurposeEvent = State['events'][number];
/** An event without its number. */
type Watched = { name: string; actions?: object; causes: object[]; eventLog?: boolean };

const within = 1;
const beyond = { above: 2, below: 3 } as const;
const always = 4;

/**
 * A purpose that watches for everything. Messages contain the event names, so these say what happened. A limit with
 * `back` needs states: the device is within the limits, above or below; everything else is in a global state.
 * `silent`: the senses that must all be silent.
 */
export function purposeOf(
  rules: Rules,
  senses: readonly Sense[],
  silent: readonly Sense[] = senses,
): Purpose {
  const actions = {
    alarm: true,
    cloud: { sendEvent: true, sendPush: true },
    ...(rules.keepMs > 0 ? { keepMs: rules.keepMs } : {}),
    // The default, which an earlier version of this page did not write.
    ...(rules.severity === 'warning' ? {} : { severity: rules.severity }),
  };
  const stated = senses.find(({ sId }) => rules.limits[sId]?.back !== undefined);
  const events = senses.flatMap((sense) => watchedOf(sense, rules.limits[sense.sId] ?? noLimit));
  const silence = silenceOf(rules.silentMs, silent);
  let evId = 0;
  const numbered = (watched: readonly Watched[]) =>
    watched.map((event) => ({ evId: (evId += 1), eventLog: true, actions, ...event }));
  const frame = { puId: 1, name: t('watch.purposeName'), initStId: within };
  const name = t('watch.stateName');
  if (!stated) {
    const states = [{ stId: within, name, events: numbered([...events, ...silence]) }];
    return { ...frame, states } as unknown as Purpose;
  }
  const limit = rules.limits[stated.sId] ?? noLimit;
  const moving = crossings(stated, limit).map(({ to, ...event }) => ({
    ...event,
    actions: { ...actions, engine: { gotoStId: to } },
  }));
  const others = senses.flatMap((sense) => {
    const own = rules.limits[sense.sId] ?? noLimit;
    return watchedOf(
      sense,
      sense === stated ? { ...own, above: undefined, below: undefined } : own,
    );
  });
  const rest = [...others, ...silence];
  const states = [
    { stId: within, name, events: numbered(moving) },
    ...returns(stated, limit).map(({ stId, name, event }) => ({
      stId,
      name,
      events: numbered([event]),
    })),
    ...(rest.length === 0 ? [] : [{ stId: always, name, isGlobal: true, events: numbered(rest) }]),
  ];
  return { ...frame, states } as unknown as Purpose;
}

const held = (forMs: number) => (forMs > 0 ? { threshold: { forMs } } : {});

/** A value beyond a limit, with the state that it leads to. */
function crossings(
  sense: Sense,
  { above, below, forMs }: SenseRules,
): (Watched & { to: number })[] {
  const { sId } = sense;
  const text = (value: number) => ({
    name: nameOfSense(sId, sense),
    value: formatTyped(value, sense),
  });
  const one = (thresholds: object) => [{ sId, orderId: 0, ...held(forMs), thresholds }];
  return [
    ...(above === undefined
      ? []
      : [
          {
            name: t('watch.aboveName', text(above)),
            causes: one({ isGt: above }),
            to: beyond.above,
          },
        ]),
    ...(below === undefined
      ? []
      : [
          {
            name: t('watch.belowName', text(below)),
            causes: one({ isLt: below }),
            to: beyond.below,
          },
        ]),
  ];
}

/** The states beyond a limit, each with what leads back. */
function returns(sense: Sense, { above, below, back = 0 }: SenseRules) {
  const { sId } = sense;
  const state = (stId: number, value: number, which: 'above' | 'below') => {
    const said = { name: nameOfSense(sId, sense), value: formatTyped(value, sense) };
    const thresholds = which === 'above' ? { isLt: value } : { isGt: value };
    return {
      stId,
      name: t(`watch.${which}State`),
      event: {
        name: t('watch.backName', said),
        actions: { cloud: { sendEvent: true }, engine: { gotoStId: within } },
        causes: [{ sId, orderId: 0, thresholds }],
      },
    };
  };
  return [
    ...(above === undefined ? [] : [state(beyond.above, short(above - back), 'above')]),
    ...(below === undefined ? [] : [state(beyond.below, short(below + back), 'below')]),
  ];
}

/** Without what a computer adds to a difference: 8 - 0.1 is 7.9. */
const short = (value: number) => Number(value.toPrecision(12));

/** All that is watched of a sense, without states. */
function watchedOf(sense: Sense, limit: SenseRules): Watched[] {
  const { sId } = sense;
  const { on, rise, fall, forMs, withinMs } = limit;
  const name = nameOfSense(sId, sense);
  const changes = (which: 'rise' | 'fall', value: number | undefined, thresholds: object) =>
    value === undefined
      ? []
      : [
          {
            name: t(`watch.${which}Name`, { name, value: formatTyped(value, sense) }),
            causes: [
              { sId, orderId: 0, threshold: { over: { ms: withinMs, stat: 'delta' } }, thresholds },
            ],
          },
        ];
  return [
    ...crossings(sense, limit).map(({ to: _to, ...event }) => event),
    ...(on === undefined
      ? []
      : [
          {
            name: t(on === 1 ? 'watch.onName' : 'watch.offName', { name }),
            causes: [{ sId, orderId: 0, ...held(forMs), thresholds: { isOneOf: [on] } }],
          },
        ]),
    ...changes('rise', rise, { isGt: rise }),
    ...changes('fall', fall, { isLt: fall === undefined ? 0 : -fall }),
  ];
}

/** All senses must be silent: a value of any of them shows that the device is there. */
function silenceOf(silentMs: number, senses: readonly Sense[]): Watched[] {
  if (silentMs === 0 || senses.length === 0) return [];
  const causes = senses.map(({ sId }, orderId) => ({
    sId,
    orderId,
    threshold: { noneForMs: silentMs },
  }));
  return [{ name: t('watch.silentName'), causes }];
}

/** The rules of an installed profile; null if it contains anything that these rules would lose. */
export function rulesIn(purposes: readonly Purpose[], senses: readonly Sense[]): Rules | null {
  const [purpose, ...more] = purposes;
  if (!purpose || more.length > 0) return null;
  const limits: Record<string, SenseRules> = {};
  let [silentMs, keepMs] = [0, 0];
  let severity: Severity = 'warning';
  const heard = new Set<string>();
  for (const { stId, events } of purpose.states)
    for (const event of events) {
      const [cause] = event.causes;
      if (!cause) return null;
      silentMs = cause.threshold?.noneForMs ?? silentMs;
      keepMs = event.actions.keepMs ?? keepMs;
      severity = event.actions.severity ?? severity;
      const known = limits[cause.sId] ?? noLimit;
      if (cause.threshold?.noneForMs !== undefined)
        for (const { sId } of event.causes) heard.add(sId);
      else limits[cause.sId] = { ...known, ...limitIn(stId, cause, known) };
    }
  const rules = { limits, silentMs, keepMs, severity };
  if (senses.some((sense) => isHidden(sense, limits[sense.sId] ?? noLimit))) return null;
  // What these rules write must be what is installed, whatever the language of its names. A sense that was added since
  // is not waited for yet.
  const silent = senses.filter(({ sId }) => heard.has(sId));
  return essence(purposeOf(rules, senses, silent)) === essence(purpose) ? rules : null;
}

/** Whether the form has no field for a limit: those of a switch are its two values. */
function isHidden(sense: Sense, { on, above, below, back, rise, fall }: SenseRules): boolean {
  return kindOf(sense, { points: [] }) === 'switch'
    ? [above, below, back, rise, fall].some((each) => each !== undefined) || (on ?? 0) > 1
    : on !== undefined;
}

function limitIn(
  stId: number,
  { threshold, thresholds }: PurposeEvent['causes'][number],
  known: SenseRules,
): Partial<SenseRules> {
  const { isGt, isLt, isOneOf } = thresholds;
  const { over, forMs = 0 } = threshold ?? {};
  const change = isGt ?? -(isLt ?? 0);
  if (over) return { [isGt === undefined ? 'fall' : 'rise']: change, withinMs: over.ms };
  if (isOneOf) return { on: isOneOf[0], forMs };
  if (stId === beyond.above && isLt !== undefined && known.above !== undefined)
    return { back: short(known.above - isLt) };
  if (stId === beyond.below && isGt !== undefined && known.below !== undefined)
    return { back: short(isGt - known.below) };
  return isGt === undefined ? { below: isLt, forMs } : { above: isGt, forMs };
}

const essence = ({ initStId, states }: Purpose): string =>
  JSON.stringify(bare({ initStId, states }));

/** Removes names, the default severity, and absent, false and empty members, and sorts the rest. */
function bare(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === false ? undefined : value;
  const members = Object.entries(value)
    .filter(([name, member]) => name !== 'name' && (name !== 'severity' || member !== 'warning'))
    .map(([name, member]) => [name, bare(member)] as const)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return members.length === 0 ? undefined : members;
}

const asks = ({ above, below, on, rise, fall }: SenseRules) =>
  [above, below, on, rise, fall].some((each) => each !== undefined);

export const isEmpty = ({ limits, silentMs }: Rules): boolean =>
  silentMs === 0 && !Object.values(limits).some(asks);

/** What is wrong with a field: its name, as `above:0x10`, and why. */
export type Wrong = { field: string; text: string };

/** What can never work, or would always: said before it is installed. */
export function problemsOf({ limits }: Rules, senses: readonly Sense[]): Wrong[] {
  const wrong: Wrong[] = [];
  const stated = senses.filter(({ sId }) => limits[sId]?.back !== undefined);
  for (const sense of senses) {
    const { sId, min, max } = sense;
    const { above, below, back, rise, fall } = limits[sId] ?? noLimit;
    const at = (field: string, text: string) => wrong.push({ field: `${field}:${sId}`, text });
    const value = (number: number) => formatTyped(number, { unit: sense.unit });
    if (above !== undefined && below !== undefined && below >= above)
      at('below', t('watch.wrong.pair', { above: value(above) }));
    if (max !== undefined && above !== undefined && above >= max)
      at('above', t('watch.wrong.never', { limit: value(max) }));
    if (min !== undefined && below !== undefined && below <= min)
      at('below', t('watch.wrong.never', { limit: value(min) }));
    if (min !== undefined && above !== undefined && above < min)
      at('above', t('watch.wrong.always', { limit: value(min) }));
    if (max !== undefined && below !== undefined && below > max)
      at('below', t('watch.wrong.always', { limit: value(max) }));
    // No value would be far enough back, so that the alarm would never be over.
    const lowest = min !== undefined && above !== undefined ? above - min : Infinity;
    const highest = max !== undefined && below !== undefined ? max - below : Infinity;
    const most = Math.min(lowest, highest);
    if (back !== undefined && back >= most && most > 0)
      at('back', t('watch.wrong.backNever', { limit: value(short(most)) }));
    for (const [field, number] of Object.entries({ back, rise, fall }))
      if (number !== undefined && number <= 0) at(field, t('watch.wrong.positive'));
    if (back !== undefined && above === undefined && below === undefined)
      at('back', t('watch.wrong.backAlone'));
    if (back !== undefined && above !== undefined && below !== undefined && back >= above - below)
      at('back', t('watch.wrong.back', { limit: value(short(above - below)) }));
    if (back !== undefined && stated.length > 1) at('back', t('watch.wrong.backTwice'));
  }
  return wrong;
}
