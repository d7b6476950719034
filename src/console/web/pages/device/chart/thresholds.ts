import type { Sense } from '../../../api/types.ts';
import { formatValue, isPlain } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import type { CurrentProfile } from '../tab.ts';

/** A limit of the installed profile. `text`: its event, and what is compared. */
export type Limit = { value: number; text: string; name: string; isAlarm: boolean };

/** The limits that values of a sense are compared with. Sums and relative limits have no place on its axis. */
export function limitsOf(
  sId: string,
  sense: Sense | undefined,
  profile: CurrentProfile | null,
): Limit[] {
  const found = new Map<string, Limit>();
  const events = (profile?.purposes ?? []).flatMap(({ states }) =>
    states.flatMap((state) => state.events),
  );
  for (const { name: own, evId, actions, causes } of events) {
    for (const { sId: of, threshold, thresholds } of causes) {
      if (of !== sId || !isPlain(threshold)) continue;
      const name = own || t('event.unknown', { id: evId });
      const add = (value: number | undefined, say: (limit: string) => string) => {
        if (value === undefined) return;
        const text = `${name}: ${say(formatValue(value, { unit: sense?.unit }))}`;
        found.set(text, { value, text, name, isAlarm: actions.alarm !== undefined });
      };
      add(thresholds.isGt, (limit) => t('event.above', { limit }));
      add(thresholds.isLt, (limit) => t('event.below', { limit }));
    }
  }
  return [...found.values()];
}
