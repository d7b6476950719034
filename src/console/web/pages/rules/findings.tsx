import { useEffect, useState } from 'preact/hooks';
import type { Checked, Finding } from '../../engine/check.ts';
import { exploreRule } from '../../engine/explore.ts';
import { Icon } from '../../parts/icon.tsx';
import { formatDuration, formatValue } from '../../text/format.ts';
import type { Rule } from './document.ts';
import { text, tryText } from './texts.ts';

const afterMs = 200;

const unchecked: Checked = { findings: [], purpose: null };

/**
 * What the service would say of a rule; of the one before while it is checked. `isTried`: also what trying it shows;
 * only one rule of a page can be tried.
 */
export function useChecked(rule: Rule, { isTried }: { isTried: boolean }): Checked {
  const [checked, setChecked] = useState(unchecked);
  useEffect(() => {
    let isGone = false;
    const check = async () => {
      const { checkRule } = await import('../../engine/check.ts');
      if (isGone) return;
      const found = checkRule(rule);
      setChecked(found);
      const explored = isTried && found.purpose ? await exploreRule(found.purpose) : null;
      if (!isGone && explored && explored.length > 0) setChecked(checkRule(rule, explored));
    };
    // Without the check the service still refuses what is wrong.
    const timer = setTimeout(() => void check().catch(() => undefined), afterMs);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [rule, isTried]);
  return checked;
}

/** Findings in words, beside what they are about. */
export function FindingsAt({ of }: { of: readonly Finding[] }) {
  if (of.length === 0) return null;
  return (
    <ul class="findings">
      {of.map((found) => (
        <li
          key={`${found.path.join('/')} ${found.message}`}
          class={found.code === null ? 'is-wrong' : ''}
        >
          <Icon name="warn" />
          <span>
            {sayFinding(found)}
            {found.witness && <small> {sayWitness(found.witness)}</small>}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** A stream that shows it: "0x1: 9, 6 times, 1 min apart". */
function sayWitness(steps: NonNullable<Finding['witness']>): string {
  const said = steps.map(({ afterMs, sId = '', val, times = 1 }) => {
    const time = formatDuration(afterMs);
    if (val === undefined) return text('found.witness.wait', { time });
    const value = formatValue(val);
    if (times === 1) return text('found.witness.one', { sId, value });
    return text('found.witness.many', { sId, value, times: String(times), time });
  });
  return text('found.witness', { steps: said.join(', ') });
}

function sayFinding({ code, path, message }: Finding): string {
  if (code !== null) return tryText(`found.${code}`, message);
  const last = path.at(-1);
  if (last === 'sId') return text('found.sId');
  if (last === 'gotoStId') return text('found.gotoStId');
  return text('found.refused', { message });
}
