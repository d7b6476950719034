import { useEffect, useRef, useState } from 'preact/hooks';
import { listProfilesOf } from '../../api/devices.ts';
import { tryRule } from '../../api/rules.ts';
import type { Sense } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { accountOf } from '../../app/session.ts';
import { Problem, Skeleton } from '../../parts/panel.tsx';
import { count, t } from '../../text/t.ts';
import { tsOf, wallOf } from '../../text/time.ts';
import type { Span } from '../device/chart/points.ts';
import { type Chosen, DevicesChoice } from './devices-choice.tsx';
import { isOn, type Rule, type Selected } from './document.ts';
import { Choice } from './fields.tsx';
import { Outcome, type Result } from './outcome.tsx';
import { text } from './texts.ts';
import { TryChart } from './try-chart.tsx';

const dayMs = 86_400_000;
const ranges = { day: dayMs, week: 7 * dayMs, month: 30 * dayMs } as const;
const rangeNames = ['day', 'week', 'month', 'chosen'] as const;
type RangeName = (typeof rangeNames)[number];
/** The choice of what it is compared with. */
type Against = 'recorded' | 'stored' | 'nothing';

type TryProps = {
  rule: Rule;
  selected: Selected | null;
  /** The devices that it is tried on. */
  chosen: readonly Chosen[];
  onChoose: (chosen: readonly Chosen[]) => void;
  /** The sensors that the rule is written for. */
  senses: ReadonlyMap<string, Sense>;
  /** The rule as it is saved; null: it never was. */
  stored: Rule | null;
  onChange: (rule: Rule, key?: string) => void;
};

/** What the rule would have done on devices, beside what happened; a limit can be moved on the chart of one of them. */
export function Try({ rule, selected, chosen, onChoose, senses, stored, onChange }: TryProps) {
  const zone = accountOf()?.timeZone ?? 'UTC';
  const [name, setName] = useState<RangeName>('week');
  const [walls, setWalls] = useState(() => ({
    from: wallOf(now() - dayMs, zone),
    to: wallOf(now(), zone),
  }));
  const [against, setAgainst] = useState<Against>('recorded');
  const [isWrong, setIsWrong] = useState(false);
  const [span, setSpan] = useState<Span | null>(null);
  const [shown, setShown] = useState('');
  const [result, setResult] = useState<Result | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const gone = useRef<AbortController>(null);
  useEffect(() => () => gone.current?.abort(), []);
  const run = async () => {
    gone.current?.abort();
    const { signal } = (gone.current = new AbortController());
    const asked =
      name === 'chosen' ? spanOf(walls, zone) : { start: now() - ranges[name], end: now() };
    setIsWrong(asked === null);
    if (!asked) return;
    setSpan(asked);
    setShown((before) =>
      chosen.some(({ uuid }) => uuid === before) ? before : (chosen[0]?.uuid ?? ''),
    );
    setBusy(true);
    setError(null);
    try {
      const answered = await ask(rule, { chosen, span: asked, against, stored }, signal);
      setResult(answered);
    } catch (thrown) {
      if (!signal.aborted) setError(thrown);
    }
    if (!signal.aborted) setBusy(false);
  };
  const bound = (which: 'from' | 'to') => (
    <input
      type="datetime-local"
      aria-label={t(`range.${which}`)}
      aria-invalid={isWrong ? 'true' : undefined}
      value={walls[which]}
      onInput={({ currentTarget }) => setWalls({ ...walls, [which]: currentTarget.value })}
    />
  );
  return (
    <section class="panel rule-try" aria-labelledby="try">
      <h2 id="try">{text('try.title')}</h2>
      <details class="more">
        <summary>{sayChosen(chosen)}</summary>
        <DevicesChoice legend={text('try.which')} chosen={chosen} onChange={onChoose} />
      </details>
      <div class="sentence">
        <Choice
          label={text('try.range')}
          value={name}
          options={rangeNames.map((each) => [each, text(`try.${each}`)])}
          onChange={setName}
        />
        {name === 'chosen' && (
          <>
            {bound('from')}
            <span>{text('try.until')}</span>
            {bound('to')}
          </>
        )}
        {stored !== null && (
          <Choice
            label={text('try.against')}
            value={against}
            options={(['recorded', 'stored', 'nothing'] as const).map((each) => [
              each,
              text(`try.against.${each}`),
            ])}
            onChange={setAgainst}
          />
        )}
        <button
          type="button"
          class="button button-main"
          disabled={isBusy || chosen.length === 0}
          onClick={() => void run()}
        >
          {text('try.run')}
        </button>
      </div>
      {isWrong && (
        <p class="field-problem" role="alert">
          {t('range.wrong')}
        </p>
      )}
      {error !== null && <Problem error={error} />}
      {isBusy && <Skeleton lines={2} />}
      {result && !isBusy && (
        <Outcome result={result} isOld={result.rule !== rule} shown={shown} onShow={setShown} />
      )}
      {span && shown !== '' && (
        <TryChart
          key={`${shown}/${span.start}`}
          {...{ rule, selected, senses, span, onChange }}
          uuid={shown}
        />
      )}
    </section>
  );
}

function sayChosen(chosen: readonly Chosen[]): string {
  const [first] = chosen;
  if (!first) return text('try.onNone');
  if (chosen.length === 1) return text('try.onOne', { name: first.name });
  return text('try.on', { devices: count('fleet.devices', chosen.length) });
}

/** What was typed as a range that is over; null if it is none. */
function spanOf({ from, to }: { from: string; to: string }, zone: string): Span | null {
  const [start, end] = [tsOf(from, zone), tsOf(to, zone)];
  if (start === undefined || end === undefined || end <= start || start >= now()) return null;
  return { start, end: Math.min(end, now()) };
}

type Asked = Pick<TryProps, 'chosen' | 'stored'> & { span: Span; against: Against };

async function ask(
  rule: Rule,
  { chosen, span, against: asked, stored }: Asked,
  signal: AbortSignal,
): Promise<Result> {
  const against = stored === null || asked === 'nothing' ? null : asked;
  const uuids = chosen.map(({ uuid }) => uuid);
  const had = async (uuid: string) =>
    stored !== null &&
    stored['puId'] === rule['puId'] &&
    isOn(await listProfilesOf(uuid, signal), stored, span);
  const having =
    against === 'recorded' ? await Promise.all(uuids.map(had)) : uuids.map(() => against !== null);
  const isCompared = having.includes(true);
  const other = against === 'stored' ? { purposes: [stored] } : 'recorded';
  const lines = await tryRule(rule, { uuids, ...span, against: isCompared ? other : null }, signal);
  const without = against === null && stored !== null ? [] : uuids.filter((_, n) => !having[n]);
  return { lines, rule, span, devices: chosen, against: isCompared ? against : null, without };
}
