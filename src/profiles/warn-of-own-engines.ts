import type { Cause, Purpose, PurposeEvent, PurposePath } from '../contract/purpose.ts';
import { warning, type Warning } from '../contract/warnings.ts';

/** A member that only the service is known to evaluate, and where it stands. */
export type ServiceOnly = { path: string; member: string };

const members = ['forMs', 'noneForMs', 'over', 'maxAgeMs'] as const;

/**
 * The first member of time in these purposes that a device with an engine of its own may not know; null where
 * there is none. What waits for silence only the service watches in any case, unless it moves the device.
 */
export function findServiceOnly(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
): ServiceOnly | null {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, event] of events.entries()) {
        if (isWatchedAnyway(event)) continue;
        for (const [c, cause] of event.causes.entries()) {
          const member = members.find((it) => cause.threshold?.[it] !== undefined);
          const at = `${pathOf(index)}/states/${s}/events/${e}/causes/${c}/threshold`;
          if (member) return { path: `${at}/${member}`, member };
        }
      }
  return null;
}

function isWatchedAnyway({ causes, actions: { engine } }: PurposeEvent): boolean {
  const isSilence = ({ threshold }: Cause) => threshold?.noneForMs !== undefined;
  const moves = engine?.gotoStId !== undefined || engine?.gotoPuId !== undefined;
  return !moves && causes.every(isSilence);
}

/** `count`: how many of the chosen devices evaluate their profiles themselves. */
export function warnOfOwnEngines({ path, member }: ServiceOnly, count: number): Warning[] {
  if (count === 0) return [];
  const who =
    count === 1
      ? 'a chosen device evaluates its profiles itself'
      : `${count} of the chosen devices evaluate their profiles themselves`;
  return [warning('needs-service-engine', path, `${who}, and may not know ${member}`)];
}
