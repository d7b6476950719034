import { describeEvaluation } from '../../src/engine/explain.ts';
import { profileOf, purposeWith } from './samples.ts';

type Explanation = Parameters<typeof describeEvaluation>[1];
export type CauseExplanation = Explanation['events'][number]['causes'][number];

const nothing: CauseExplanation = {
  sId: '0x1',
  orderId: 0,
  thresholds: {},
  negate: false,
  relative: false,
  matched: 0,
  of: 0,
  windowLength: 1,
  needed: 1,
  missing: 1,
  holds: false,
};
const profile = profileOf(purposeWith({ evId: 1, causes: [{ sId: '0x1', thresholds: {} }] }));

/** Where a cause of the only event stands, in words: one that has nothing yet but these members. */
export function describedCause(members: Partial<CauseExplanation>, nowTs: number): string {
  const causes = [{ ...nothing, ...members }];
  const event = { stId: 1, evId: 1, name: '', isGlobal: false, rung: false, causes };
  const explanation = { pId: 'p', puId: 1, stId: 1, events: [event] };
  const [described] = describeEvaluation(profile, explanation, { nowTs }).events;
  return described?.causes[0]?.text ?? '';
}
