import { useState } from 'preact/hooks';
import { nameOfSense } from '../../api/devices.ts';
import type { LatestView, Sense } from '../../api/types.ts';
import { Form, Submit, textOf, useForm } from '../../parts/form.tsx';
import { NumberField, numberOf, wrongNumber } from '../../parts/number-field.tsx';
import { formatDuration, formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { kindOf } from '../device/chart/points.ts';
import {
  isEmpty,
  type SenseRules,
  noLimit,
  problemsOf,
  type Rules,
  type Wrong,
  severities,
} from './rules.ts';

type LimitsFormProps = {
  senses: readonly Sense[];
  rules: Rules;
  latest: readonly LatestView[];
  onSave: (rules: Rules) => Promise<void>;
};

/** Limits of each sense, how fast it may change, and how long silence may last. */
export function LimitsForm({ senses, rules, latest, onSave }: LimitsFormProps) {
  const [found, setFound] = useState<Checked | null>(null);
  const form = useForm(async (values) => {
    const checked = checkRules(values, senses);
    setFound(checked);
    if (isRight(checked)) await onSave(checked.rules);
  });
  return (
    <Form form={form}>
      <Nothing found={found} />
      <SeverityField value={rules.severity} />
      <LimitFields senses={senses} rules={rules} latest={latest} found={found} />
      <p class="fine">{t('watch.hint')}</p>
      <div>
        <Submit form={form}>{t('watch.save')}</Submit>
      </div>
    </Form>
  );
}

/** What was typed, and what is wrong with it. */
export type Checked = { rules: Rules; wrong: readonly Wrong[] };

/** Whether they can be installed: nothing is wrong, and they ask for something. */
export const isRight = ({ rules, wrong }: Checked): boolean =>
  wrong.length === 0 && !isEmpty(rules);

/** Reads the fields of a form that contains `LimitFields`, and `SeverityField` or not. */
export function checkRules(values: FormData, senses: readonly Sense[]): Checked {
  const rules = readRules(values, senses);
  const unread = senses.flatMap(({ sId }) =>
    fields
      .map((field) => `${field}:${sId}`)
      .filter((name) => numberOf(values, name) === null)
      .map((field) => ({ field, text: wrongNumber() })),
  );
  return { rules, wrong: unread.length > 0 ? unread : problemsOf(rules, senses) };
}

/** Says that nothing was asked for. */
export const Nothing = ({ found }: { found: Checked | null }) =>
  found && found.wrong.length === 0 && isEmpty(found.rules) ? (
    <p class="form-error" role="alert">
      {t('watch.nothing')}
    </p>
  ) : null;

/** How serious alarms are; without a value they may stay as they are. */
export const SeverityField = ({ value }: { value?: Rules['severity'] }) => (
  <label class="field">
    <span>{t('watch.severity')}</span>
    <select name="severity">
      {value === undefined && <option value="">{t('watch.severity.same')}</option>}
      {severities.map((each) => (
        <option key={each} value={each} selected={each === value}>
          {t(`severity.${each}`)}
        </option>
      ))}
    </select>
  </label>
);

type LimitFieldsProps = Omit<LimitsFormProps, 'onSave'> & { found: Checked | null };

/** All fields but that of the severity. */
export function LimitFields({ senses, rules, latest, found }: LimitFieldsProps) {
  return (
    <>
      {senses.map((sense) => (
        <SenseLimits
          key={sense.sId}
          sense={sense}
          limit={rules.limits[sense.sId] ?? noLimit}
          value={latest.find(({ sId }) => sId === sense.sId)}
          problemAt={(field) =>
            found?.wrong.find((each) => each.field === `${field}:${sense.sId}`)?.text ?? ''
          }
        />
      ))}
      <Times
        name="silent"
        label={t('watch.silent')}
        value={rules.silentMs}
        choices={silences}
        say={(ms) => (ms === 0 ? t('watch.silent.never') : formatDuration(ms))}
      />
      <Times
        name="keep"
        label={t('watch.keep')}
        value={rules.keepMs}
        choices={keeps}
        say={(ms) =>
          ms === 0 ? t('watch.keep.none') : t('watch.keep.for', { time: formatDuration(ms) })
        }
      />
    </>
  );
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const silences = [0, 15 * minuteMs, hourMs, 6 * hourMs, 24 * hourMs];
const keeps = [0, 5 * minuteMs, 15 * minuteMs, hourMs];
const delays = [0, minuteMs, 5 * minuteMs, 10 * minuteMs, 30 * minuteMs, hourMs];
const spans = [15 * minuteMs, hourMs, 6 * hourMs, 24 * hourMs];
const fields = ['below', 'above', 'back', 'rise', 'fall'] as const;

type TimesProps = {
  name: string;
  label: string;
  value: number;
  choices: readonly number[];
  say: (ms: number) => string;
};

/** One of a few durations, or the one that is there. */
function Times({ name, label, value, choices, say }: TimesProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select name={name}>
        {[...new Set([...choices, value])]
          .toSorted((a, b) => a - b)
          .map((ms) => (
            <option key={ms} value={ms} selected={ms === value}>
              {say(ms)}
            </option>
          ))}
      </select>
    </label>
  );
}

type SenseLimitsProps = {
  sense: Sense;
  limit: SenseRules;
  value: LatestView | undefined;
  problemAt: (field: string) => string;
};

function SenseLimits(props: SenseLimitsProps) {
  const { sense, value } = props;
  const isSwitch = kindOf(sense, { points: [] }) === 'switch';
  if (value && typeof value.val !== 'number') return null;
  return (
    <fieldset class="watch-sense">
      <legend>
        {nameOfSense(sense.sId, sense)} <Now sense={sense} value={value} />
      </legend>
      {isSwitch ? <SwitchLimits {...props} /> : <NumberLimits {...props} />}
    </fieldset>
  );
}

/** The newest value: what a limit is chosen by. */
export function Now({ sense, value }: { sense: Sense | undefined; value: LatestView | undefined }) {
  if (!value) return null;
  const isSwitch = kindOf(sense, { points: [] }) === 'switch';
  const text = isSwitch
    ? t(value.val === 0 ? 'chart.off' : 'chart.on')
    : formatValue(value.val, sense);
  return <span class="fine watch-now">{t('watch.now', { value: text })}</span>;
}

function SwitchLimits({ sense: { sId }, limit: { on, forMs } }: SenseLimitsProps) {
  return (
    <div>
      <label class="field">
        <span>{t('watch.on')}</span>
        <select name={`on:${sId}`}>
          {(['', '1', '0'] as const).map((each) => (
            <option key={each} value={each} selected={each === String(on ?? '')}>
              {each === '' ? t('watch.on.never') : t(each === '1' ? 'chart.on' : 'chart.off')}
            </option>
          ))}
        </select>
      </label>
      <Times
        name={`for:${sId}`}
        label={t('watch.for')}
        value={on === undefined ? 10 * minuteMs : forMs}
        choices={delays}
        say={sayDelay}
      />
    </div>
  );
}

const sayDelay = (ms: number) => (ms === 0 ? t('watch.for.none') : formatDuration(ms));

function NumberLimits({ sense, limit, problemAt }: SenseLimitsProps) {
  const { sId, unit } = sense;
  const name = nameOfSense(sId, sense);
  const number = (field: (typeof fields)[number]) => (
    <NumberField
      name={`${field}:${sId}`}
      label={t(`watch.${field}`)}
      unit={unit}
      value={limit[field]}
      problem={problemAt(field)}
    />
  );
  const { back, rise, fall, forMs, withinMs } = limit;
  const isMore = [back, rise, fall].some((each) => each !== undefined) || forMs > 0;
  const isWrong = (['back', 'rise', 'fall'] as const).some((field) => problemAt(field) !== '');
  return (
    <>
      <div>
        {number('below')}
        {number('above')}
      </div>
      <details class="more" open={isMore || isWrong}>
        <summary>{t('watch.more', { name })}</summary>
        <div>
          <Times
            name={`for:${sId}`}
            label={t('watch.for')}
            value={forMs}
            choices={delays}
            say={sayDelay}
          />
          {number('back')}
          {number('rise')}
          {number('fall')}
          <Times
            name={`within:${sId}`}
            label={t('watch.within')}
            value={withinMs}
            choices={spans}
            say={formatDuration}
          />
        </div>
      </details>
    </>
  );
}

function readRules(values: FormData, senses: readonly Sense[]): Rules {
  const limits = senses.map(({ sId }) => {
    const number = (field: string) => numberOf(values, `${field}:${sId}`) ?? undefined;
    const on = textOf(values, `on:${sId}`);
    const limit = {
      above: number('above'),
      below: number('below'),
      back: number('back'),
      rise: number('rise'),
      fall: number('fall'),
      on: on === '' ? undefined : Number(on),
      forMs: Number(textOf(values, `for:${sId}`)),
      withinMs: Number(textOf(values, `within:${sId}`)) || noLimit.withinMs,
    };
    return [sId, limit] as const;
  });
  return {
    limits: Object.fromEntries(limits),
    silentMs: Number(textOf(values, 'silent')),
    keepMs: Number(textOf(values, 'keep')),
    severity: severities.find((each) => each === textOf(values, 'severity')) ?? 'warning',
  };
}
