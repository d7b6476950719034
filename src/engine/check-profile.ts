import type { Problem } from '../errors.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';

export const purposesPath: PurposePath = (index) => `/purposes/${index}`;

/**
 * What makes purposes unfit to be one profile: two with one puId, a gotoPuId that none of them has,
 * a gotoStId that the purpose it leads to lacks.
 */
export function checkProfile(purposes: Purpose[], pathOf: PurposePath = purposesPath): Problem[] {
  const byPuId = new Map<number, Purpose>();
  const problems: Problem[] = [];
  for (const [index, purpose] of purposes.entries()) {
    if (byPuId.has(purpose.puId)) {
      const message = `another purpose of the profile has the puId ${purpose.puId}`;
      problems.push({ path: `${pathOf(index)}/puId`, message });
    } else {
      byPuId.set(purpose.puId, purpose);
    }
  }
  for (const [index, purpose] of purposes.entries()) {
    problems.push(...checkTargets(purpose, byPuId, pathOf(index)));
  }
  return problems;
}

function checkTargets(
  purpose: Purpose,
  byPuId: ReadonlyMap<number, Purpose>,
  path: string,
): Problem[] {
  const problems: Problem[] = [];
  for (const [s, state] of purpose.states.entries()) {
    for (const [e, event] of state.events.entries()) {
      const { gotoPuId, gotoStId } = event.actions.engine ?? {};
      const at = `${path}/states/${s}/events/${e}/actions/engine`;
      const target = gotoPuId === undefined ? purpose : byPuId.get(gotoPuId);
      if (!target) {
        const message = `no purpose of the profile has the puId ${gotoPuId}`;
        problems.push({ path: `${at}/gotoPuId`, message });
      } else if (gotoStId !== undefined && !target.states.some((it) => it.stId === gotoStId)) {
        const message = `purpose ${target.puId} has no state with the stId ${gotoStId}`;
        problems.push({ path: `${at}/gotoStId`, message });
      }
    }
  }
  return problems;
}
