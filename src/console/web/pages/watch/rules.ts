import type { Purpose, Sense } from '../../api/types.ts';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { nameOfSense } from '../../api/devices.ts';

/** What somebody is notified of: values outside limits, by sId, and silence. */
export type Rules = {
  above: Record<string, number>;
  below: Record<string, number>;
  /** 0: silence is ignored. */
  silentMs: number;
};

export const noRules: Rules = { above: {}, below: {}, silentMs: 0 };

type PurposeEvent = Purpose['states'][number]['events'][number];
type Threshold = Partial<NonNullable<PurposeEvent['causes'][number]['threshold']>>;

const actions = { alarm: true, cloud: { sendEvent: true, sendPush: true } };

/**
 * A purpose with one state that watches for everything. Messages contain the event names, so these say what happened.
 */
export function purposeOf(rules: Rules, senses: readonly Sense[]): Purpose {
  const cause = (sId: string, more: object) => ({ sId, orderId: 0, ...more });
  const events = [
    ...senses.flatMap((sense) => {
      const { sId } = sense;
      const name = nameOfSense(sId, sense);
      const [above, below] = [rules.above[sId], rules.below[sId]];
      const text = (value: number) => ({ name, value: formatValue(value, sense) });
      return [
        ...(above === undefined
          ? []
          : [
              {
                name: t('watch.aboveName', text(above)),
                causes: [cause(sId, { thresholds: { isGt: above } })],
              },
            ]),
        ...(below === undefined
          ? []
          : [
              {
                name: t('watch.belowName', text(below)),
                causes: [cause(sId, { thresholds: { isLt: below } })],
              },
            ]),
      ];
    }),
    // All senses must be silent: a value of any of them shows that the device is there.
    ...(rules.silentMs === 0 || senses.length === 0
      ? []
      : [
          {
            name: t('watch.silentName'),
            causes: senses.map(({ sId }, orderId) => ({
              sId,
              orderId,
              threshold: { noneForMs: rules.silentMs },
            })),
          },
        ]),
  ].map((event, place) => ({ evId: place + 1, eventLog: true, actions, ...event }));
  const name = t('watch.purposeName');
  return {
    puId: 1,
    name,
    initStId: 1,
    states: [{ stId: 1, name: t('watch.stateName'), events }],
  } as unknown as Purpose;
}

/** The rules of an installed profile; null if it contains more than these rules can express. */
export function rulesIn(purposes: readonly Purpose[]): Rules | null {
  const [purpose, ...others] = purposes;
  const [state, ...more] = purpose?.states ?? [];
  if (!state || others.length > 0 || more.length > 0) return null;
  const rules: Rules = { above: {}, below: {}, silentMs: 0 };
  for (const { causes, actions } of state.events) {
    const known = ['alarm', 'cloud'];
    if (Object.keys(actions).some((name) => !known.includes(name))) return null;
    const [{ sId, threshold, thresholds } = { sId: '' }, ...further] = causes;
    if (threshold?.noneForMs !== undefined) {
      const alike = causes.every((each) => each.threshold?.noneForMs === threshold.noneForMs);
      if (!alike || rules.silentMs > 0) return null;
      rules.silentMs = threshold.noneForMs;
      continue;
    }
    const { isGt, isLt, ...rest } = thresholds ?? {};
    const isPlain = further.length === 0 && threshold === undefined;
    if (!isPlain || Object.keys(rest).length > 0) return null;
    if ((isGt === undefined) === (isLt === undefined)) return null;
    if (isGt !== undefined) rules.above[sId] = isGt;
    if (isLt !== undefined) rules.below[sId] = isLt;
  }
  return rules;
}

/** Whether the rules cover the whole profile, so that saving them loses nothing. */
export function isAllOf(rules: Rules, purposes: readonly Purpose[]): boolean {
  const events = purposes.flatMap(({ states }) => states.flatMap(({ events }) => events));
  const silent = rules.silentMs === 0 ? 0 : 1;
  const number = Object.keys(rules.above).length + Object.keys(rules.below).length + silent;
  return events.length === number && events.every(isPlain);
}

/** It contains only what this page writes. */
function isPlain({ actions: asked, causes }: PurposeEvent): boolean {
  if (JSON.stringify(bare(asked)) !== JSON.stringify(bare(actions))) return false;
  return causes.every(
    ({ sId: _sId, orderId: _orderId, threshold, thresholds: _limits, ...rest }) => {
      const { noneForMs: _silence, ...others } = (threshold ?? {}) as Threshold;
      return bare([others, rest]) === undefined;
    },
  );
}

/** Removes absent, false and empty members, and sorts the rest. */
function bare(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value === false ? undefined : value;
  const members = Object.entries(value)
    .map(([name, member]) => [name, bare(member)] as const)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return members.length === 0 ? undefined : members;
}

export const isEmpty = ({ above, below, silentMs }: Rules): boolean =>
  silentMs === 0 && Object.keys(above).length === 0 && Object.keys(below).length === 0;
