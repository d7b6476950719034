import { useId, useState } from 'preact/hooks';
import { readRule, type Rule } from './document.ts';
import { text } from './texts.ts';

/** `key`: what is typed is one step to undo. */
type JsonPanelProps = { rule: Rule; onChange: (rule: Rule, key: string) => void };

/** The rule as JSON, both ways: what is typed is taken as soon as the form can show it. */
export function JsonPanel({ rule, onChange }: JsonPanelProps) {
  const id = useId();
  const [typed, setTyped] = useState<{ text: string; of: Rule } | null>(null);
  const shown = typed?.of === rule ? typed.text : JSON.stringify(rule, null, 2);
  const [wrong, setWrong] = useState('');
  const take = (all: string) => {
    const read = parse(all);
    setWrong('rule' in read ? '' : read.wrong);
    setTyped({ text: all, of: 'rule' in read ? read.rule : rule });
    if ('rule' in read) onChange(read.rule, 'json');
  };
  const isWrong = typed?.of === rule && wrong !== '';
  return (
    <details class="more rule-json">
      <summary>{text('rules.json')}</summary>
      <textarea
        class="json"
        rows={24}
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        aria-label={text('rules.json')}
        aria-invalid={isWrong ? 'true' : undefined}
        aria-describedby={isWrong ? id : undefined}
        value={shown}
        onInput={({ currentTarget }) => take(currentTarget.value)}
      />
      {isWrong && (
        <p class="field-problem" id={id} role="alert">
          {wrong}
        </p>
      )}
    </details>
  );
}

function parse(all: string): { rule: Rule } | { wrong: string } {
  let value: unknown;
  try {
    value = JSON.parse(all);
  } catch {
    return { wrong: text('rules.noJson') };
  }
  const read = readRule(value);
  return 'rule' in read
    ? read
    : { wrong: text('rules.noRule', { at: `/${read.wrongAt.join('/')}` }) };
}
