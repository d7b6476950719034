import type { Sense } from '../../api/types.ts';
import { nameOfSense } from '../../api/devices.ts';
import { Icon } from '../../parts/icon.tsx';
import { parseNumber, typeNumber } from '../../text/number.ts';
import { locale } from '../../text/t.ts';
import {
  besideSentence,
  comparisons,
  readCause,
  type Sentence,
  subjects,
  turned,
  writeCause,
} from './cause.ts';
import { type Members, membersOf } from './document.ts';
import { Choice, DurationInput, NumberInput } from './fields.tsx';
import { text } from './texts.ts';
import { useState } from 'preact/hooks';

type CauseRowProps = {
  cause: Members;
  /** The others say "and". */
  isFirst: boolean;
  senses: ReadonlyMap<string, Sense>;
  /** `key`: what is typed in one field is one step to undo. */
  onChange: (cause: Members, key?: string) => void;
  onRemove: () => void;
};

/** A condition as a sentence whose words can be changed; as JSON if no sentence says all of it. */
export function CauseRow({ cause, isFirst, senses, onChange, onRemove }: CauseRowProps) {
  const sentence = readCause(cause);
  const beside = besideSentence(cause);
  return (
    <div class="rule-cause">
      <div class="sentence">
        {!isFirst && <span class="sentence-word">{text('rules.and')}</span>}
        {sentence ? (
          <Words
            sentence={sentence}
            senses={senses}
            onChange={(next, key) => onChange(writeCause(cause, next), key)}
          />
        ) : (
          <span class="muted">{text('rules.noSentence')}</span>
        )}
        <button
          type="button"
          class="button button-icon"
          aria-label={text('rules.removeCause')}
          onClick={onRemove}
        >
          <Icon name="bin" />
        </button>
      </div>
      {sentence === null && (
        <pre class="cause-json" tabIndex={0}>
          {JSON.stringify(cause, null, 2)}
        </pre>
      )}
      {sentence !== null && beside.length > 0 && (
        <p class="fine">{text('rules.alsoSays', { members: beside.join(', ') })}</p>
      )}
    </div>
  );
}

type WordsProps = {
  sentence: Sentence;
  senses: ReadonlyMap<string, Sense>;
  onChange: (sentence: Sentence, key?: string) => void;
};

function Words({ sentence, senses, onChange }: WordsProps) {
  const { sId, subject, overMs, comparison, forMs } = sentence;
  const sense = senses.get(sId);
  const turn = (change: Partial<Sentence>) => onChange(turned(sentence, change));
  const isSilence = subject === 'silence';
  const isPlace = comparison === 'inside' || comparison === 'away';
  const unit = subject === 'stddev' || !sense?.unit ? undefined : sense.unit;
  const shown = [...senses.keys()];
  if (!senses.has(sId)) shown.unshift(sId);
  return (
    <>
      <Choice
        label={text('rules.sensor')}
        value={sId}
        options={shown.map((each) => [
          each,
          each === '' ? text('rules.chooseSensor') : nameOfSense(each, senses.get(each)),
        ])}
        onChange={(next) => turn({ sId: next })}
      />
      <Choice
        label={text('rules.what')}
        value={subject}
        options={subjects
          .filter((each) => !isPlace || each === 'value' || each === 'silence')
          .map((each) => [each, text(`rules.subject.${each}`)])}
        onChange={(next) => turn({ subject: next })}
      />
      {overMs !== undefined && (
        <>
          <span>{text('rules.within')}</span>
          <DurationInput
            label={text('rules.overTime')}
            ms={overMs}
            onChange={(ms) => onChange({ ...sentence, overMs: ms }, 'overMs')}
          />
        </>
      )}
      {!isSilence && (
        <Choice
          label={text('rules.comparison')}
          value={comparison}
          options={comparisons.map((each) => [each, text(`rules.is.${each}`)])}
          onChange={(next) => turn({ comparison: next })}
        />
      )}
      {sentence.least !== undefined && (
        <NumberInput
          label={text('rules.limit')}
          unit={sentence.most === undefined ? unit : undefined}
          value={sentence.least}
          onChange={(least) => onChange({ ...sentence, least }, 'least')}
        />
      )}
      {sentence.least !== undefined && sentence.most !== undefined && (
        <span>{text('rules.andUpTo')}</span>
      )}
      {sentence.most !== undefined && (
        <NumberInput
          label={text('rules.limit')}
          unit={unit}
          value={sentence.most}
          onChange={(most) => onChange({ ...sentence, most }, 'most')}
        />
      )}
      {sentence.list !== undefined && (
        <ListInput
          list={sentence.list}
          onChange={(list) => onChange({ ...sentence, list }, 'list')}
        />
      )}
      {isPlace && (
        <AreaInput
          area={sentence.area ?? []}
          onChange={(area) => onChange({ ...sentence, area }, 'area')}
        />
      )}
      {isSilence ? (
        <DurationInput
          label={text('rules.silentFor')}
          ms={forMs ?? 0}
          onChange={(ms) => onChange({ ...sentence, forMs: ms }, 'forMs')}
        />
      ) : (
        <Holding sentence={sentence} onChange={onChange} />
      )}
    </>
  );
}

/** At once, for a time, or in some of the last values. */
function Holding({ sentence, onChange }: Pick<WordsProps, 'sentence' | 'onChange'>) {
  const { forMs, count, of, ...rest } = sentence;
  const isCounted = count > 1 || of > 1;
  const how = forMs !== undefined ? (isCounted ? 'both' : 'for') : isCounted ? 'count' : 'once';
  const withTime = { ...rest, forMs: forMs ?? 600_000 };
  const options = (['once', 'for', 'count', 'both'] as const).map(
    (each) => [each, text(`rules.holds.${each}`)] as const,
  );
  return (
    <>
      <Choice
        label={text('rules.holding')}
        value={how}
        options={options}
        onChange={(next) => {
          if (next === 'once') onChange({ ...rest, count: 1, of: 1 });
          else if (next === 'for') onChange({ ...withTime, count: 1, of: 1 });
          else {
            const counted = isCounted ? { count, of } : { count: 3, of: 3 };
            onChange({ ...(next === 'both' ? withTime : rest), ...counted });
          }
        }}
      />
      {forMs !== undefined && (
        <DurationInput
          label={text('rules.lasts')}
          ms={forMs}
          onChange={(ms) => onChange({ ...sentence, forMs: ms }, 'forMs')}
        />
      )}
      {isCounted && (
        <>
          {how === 'both' && <span>{text('rules.andIn')}</span>}
          <NumberInput
            label={text('rules.countOf')}
            value={count}
            least={1}
            onChange={(next) => {
              const number = Math.max(1, Math.round(next));
              onChange({ ...sentence, count: number, of: Math.max(number, of) }, 'count');
            }}
          />
          <span>{text('rules.of')}</span>
          <NumberInput
            label={text('rules.ofValues')}
            value={of}
            least={count}
            onChange={(next) =>
              onChange({ ...sentence, of: Math.max(count, Math.round(next)) }, 'of')
            }
          />
          <span>{text('rules.values')}</span>
        </>
      )}
    </>
  );
}

/** Numbers with a space or a semicolon between them. */
function ListInput({
  list,
  onChange,
}: {
  list: readonly number[];
  onChange: (list: readonly number[]) => void;
}) {
  const say = (numbers: readonly number[]) =>
    numbers.map((each) => typeNumber(each, locale())).join('; ');
  const [typed, setTyped] = useState<{ text: string; of: string } | null>(null);
  const read = (all: string) => {
    const parts = all.split(/[;\s]+/).filter((part) => part !== '');
    const numbers = parts.map((part) => parseNumber(part, locale()));
    return numbers.length > 0 && numbers.every((each) => each !== null) ? numbers : null;
  };
  const shown = typed?.of === say(list) ? typed.text : say(list);
  return (
    <input
      class="word-list"
      aria-label={text('rules.list')}
      value={shown}
      aria-invalid={read(shown) === null ? 'true' : undefined}
      onInput={({ currentTarget: { value } }) => {
        const next = read(value);
        setTyped({ text: value, of: say(next ?? list) });
        if (next) onChange(next);
      }}
    />
  );
}

/** Corners, one a line: latitude and longitude as maps give them. */
function AreaInput({
  area,
  onChange,
}: {
  area: readonly unknown[];
  onChange: (area: readonly unknown[]) => void;
}) {
  const say = (corners: readonly unknown[]) =>
    corners
      .map((corner) => {
        // JSON may have anything there.
        const { lat = '', long = '' } = membersOf(corner);
        return [lat, long].map((each) => (typeof each === 'number' ? each : '')).join(', ');
      })
      .join('\n');
  const [typed, setTyped] = useState<{ text: string; of: string } | null>(null);
  const read = (all: string) => {
    const corners = all
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => /^\s*(-?\d+(?:\.\d+)?)\s*[,;\s]\s*(-?\d+(?:\.\d+)?)\s*$/.exec(line));
    if (corners.length < 3 || corners.includes(null)) return null;
    return corners.map((corner) => ({ lat: Number(corner?.[1]), long: Number(corner?.[2]) }));
  };
  const shown = typed?.of === say(area) ? typed.text : say(area);
  const isWrong = read(shown) === null;
  return (
    <span class="word-area">
      <textarea
        rows={5}
        aria-label={text('rules.corners')}
        aria-invalid={isWrong ? 'true' : undefined}
        value={shown}
        onInput={({ currentTarget: { value } }) => {
          const next = read(value);
          setTyped({ text: value, of: say(next ?? area) });
          if (next) onChange(next);
        }}
      />
      <span class={isWrong ? 'field-problem' : 'fine'}>{text('rules.cornersHint')}</span>
    </span>
  );
}
