import { useEffect, useState } from 'preact/hooks';
import type { Finding } from '../../engine/check.ts';
import { Icon } from '../../parts/icon.tsx';
import type { Rule } from './document.ts';
import { text, tryText } from './texts.ts';

const afterMs = 200;

/** What the service would say of a rule; of the one before while it is checked. Null until that is known. */
export function useFindings(rule: Rule): readonly Finding[] | null {
  const [findings, setFindings] = useState<readonly Finding[] | null>(null);
  useEffect(() => {
    let isGone = false;
    const check = async () => {
      const { checkRule } = await import('../../engine/check.ts');
      if (!isGone) setFindings(checkRule(rule));
    };
    // Without the check the service still refuses what is wrong.
    const timer = setTimeout(() => void check().catch(() => undefined), afterMs);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [rule]);
  return findings;
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
          <span>{sayFinding(found)}</span>
        </li>
      ))}
    </ul>
  );
}

function sayFinding({ code, path, message }: Finding): string {
  if (code !== null) return tryText(`found.${code}`, message);
  const last = path.at(-1);
  if (last === 'sId') return text('found.sId');
  if (last === 'gotoStId') return text('found.gotoStId');
  return text('found.refused', { message });
}
