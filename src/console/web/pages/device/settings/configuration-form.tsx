import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { reload, useQuery } from '../../../api/cache.ts';
import {
  listRejections,
  nameOfSense,
  type Rejection,
  saveConfiguration,
  sensesOf,
} from '../../../api/devices.ts';
import { listLatest, useLatest } from '../../../api/measurements.ts';
import { ApiError } from '../../../api/request.ts';
import type { Configuration, Sense } from '../../../api/types.ts';
import { queryOf } from '../../../app/router.ts';
import { focusWrong } from '../../../parts/form.tsx';
import { wrongNumber } from '../../../parts/number-field.tsx';
import { Problem } from '../../../parts/panel.tsx';
import { describeRejection } from '../../../parts/rejections.tsx';
import { formatValue } from '../../../text/format.ts';
import { parseNumber, typeNumber } from '../../../text/number.ts';
import { locale, t } from '../../../text/t.ts';

type FormProps = { uuid: string; configuration: Configuration };

/** The name of a device, and its senses. */
export function ConfigurationForm({ uuid, configuration }: FormProps) {
  const wanted = queryOf('sense');
  const [draft, setDraft] = useState(() => withSense(draftOf(configuration), wanted));
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [known, setKnown] = useState<Known | null>(null);
  const [wrong, setWrong] = useState<readonly FieldProblem[]>([]);
  const problemAt = (path: string) => wrong.find((each) => each.path === path)?.message ?? '';
  const form = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => focusWrong(form.current), [wrong]);
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    const found = checkDraft(draft);
    setWrong(found);
    setError(null);
    if (found.length > 0) return;
    setIsBusy(true);
    try {
      await saveConfiguration(uuid, configurationOf(draft));
      reload(`configuration/${uuid}`);
      setKnown(await readKnown(uuid));
    } catch (thrown) {
      setError(thrown);
      if (thrown instanceof ApiError) setWrong(thrown.problems);
    }
    setIsBusy(false);
  };
  const change = (at: number, senses: DraftSense[]) =>
    setDraft({
      ...draft,
      modules: draft.modules.map((module, m) => (m === at ? { ...module, senses } : module)),
    });
  return (
    <form
      ref={form}
      class="form"
      aria-labelledby="configuration"
      onSubmit={(event) => void save(event)}
    >
      <h3 id="configuration">{t('settings.title')}</h3>
      {error !== null && <Problem error={error} />}
      {error === null && wrong.length > 0 && (
        <p class="form-error" role="alert">
          {t('settings.wrong')}
        </p>
      )}
      <label class="field narrow">
        <span>{t('add.name')}</span>
        <input
          name="name"
          value={draft.device.name ?? ''}
          onInput={({ currentTarget }) =>
            setDraft({ ...draft, device: { ...draft.device, name: currentTarget.value } })
          }
        />
        <WrongField text={problemAt('/device/name')} />
      </label>
      {draft.modules.map(({ own, senses }, m) => (
        <section key={own.moduleId} aria-label={own.moduleName ?? own.moduleId} class="senses">
          {draft.modules.length > 1 && <h4>{own.moduleName ?? own.moduleId}</h4>}
          {senses.map((sense, s) => (
            <SenseFields
              key={s}
              sense={sense}
              path={`/module/${m}/senses/${s}`}
              problemAt={problemAt}
              isWanted={sense.sId === wanted}
              onChange={(field, value) => change(m, senses.with(s, { ...sense, [field]: value }))}
              onRemove={() => change(m, senses.toSpliced(s, 1))}
            />
          ))}
          <button
            type="button"
            class="button"
            onClick={() => change(m, [...senses, newSense(draft)])}
          >
            {t('settings.addSense')}
          </button>
        </section>
      ))}
      <p class="fine">{t('settings.handOver')}</p>
      <button type="submit" class="button button-main" disabled={isBusy}>
        {t('settings.save')}
      </button>
      {known && <NextValue uuid={uuid} known={known} senses={sensesOf(configuration)} />}
    </form>
  );
}

function WrongField({ text }: { text: string }) {
  return text === '' ? null : <span class="field-problem">{text}</span>;
}

/** Adds the sense that the page was opened for, if it is missing. A device without modules gets one. */
function withSense(draft: Draft, sId: string): Draft {
  const modules =
    draft.modules.length > 0
      ? draft.modules
      : [{ own: { moduleId: 'device', senses: [] }, senses: [] }];
  const isKnown = modules.some(({ senses }) => senses.some((sense) => sense.sId === sId));
  if (sId === '' || isKnown) return { ...draft, modules };
  return {
    ...draft,
    modules: modules.map((module, m) =>
      m === 0 ? { ...module, senses: [...module.senses, newSense(draft, sId)] } : module,
    ),
  };
}

type Module = Configuration['module'][number];
/** The texts in the form's fields. */
type DraftSense = Record<SenseField, string> & { own: Partial<Sense> };
type DraftModule = { own: Module; senses: DraftSense[] };
type Draft = { device: Configuration['device']; modules: DraftModule[] };

const senseFields = ['sId', 'name', 'unit', 'decimals', 'min', 'max', 'minInterval'] as const;
type SenseField = (typeof senseFields)[number];
const numberFields: readonly SenseField[] = ['decimals', 'min', 'max', 'minInterval'];

/** Fills the form from a configuration, and keeps members that the form does not show. */
function draftOf({ device, module }: Configuration): Draft {
  const modules = module.map((own) => ({ own, senses: own.senses.map(draftSense) }));
  return { device: { ...device }, modules };
}

function draftSense(sense: Sense): DraftSense {
  const texts = senseFields.map((field) => {
    const value = sense[field] ?? '';
    return [field, typeof value === 'number' ? typeNumber(value, locale()) : value];
  });
  return { ...(Object.fromEntries(texts) as Record<SenseField, string>), own: sense };
}

/** A new sense, or one that the device has already sent. */
function newSense(draft: Draft, sId?: string): DraftSense {
  const used = new Set(draft.modules.flatMap(({ senses }) => senses.map(({ sId }) => sId)));
  let number = 16;
  while (used.has(`0x${number.toString(16)}`)) number += 1;
  const { own, ...texts } = draftSense({ sId: sId ?? `0x${number.toString(16)}` });
  return { ...texts, own };
}

/** What is sent: empty fields are left out; text that is not a number stays as it was typed. */
function configurationOf({ device, modules }: Draft): Configuration {
  return {
    device,
    module: modules.map(({ own, senses }) => ({ ...own, senses: senses.map(senseOf) })),
  };
}

function senseOf(draft: DraftSense): Sense {
  const { own, ...texts } = draft;
  const sense: Record<string, unknown> = { ...own };
  for (const field of senseFields) {
    const text = texts[field].trim();
    if (text === '') delete sense[field];
    else sense[field] = numberFields.includes(field) ? readNumber(text) : text;
  }
  return sense as Sense;
}

/** In the reader's language. Anything that is not a number is left for the service to refuse. */
const readNumber = (text: string): number | string => parseNumber(text, locale()) ?? text;

type FieldProblem = { path: string; message: string };

/** Finds what the service would refuse, to say it in the reader's language. The service checks everything else. */
function checkDraft({ modules }: Draft): FieldProblem[] {
  const used = new Set<string>();
  return modules.flatMap(({ senses }, m) =>
    senses.flatMap((sense, s) =>
      checkSense(sense, used).map(({ path, message }) => ({
        path: `/module/${m}/senses/${s}/${path}`,
        message,
      })),
    ),
  );
}

function checkSense(sense: DraftSense, used: Set<string>): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const sId = sense.sId.trim();
  if (!/^0x[0-9a-f]+$/i.test(sId)) problems.push({ path: 'sId', message: t('settings.wrongId') });
  if (used.has(sId)) problems.push({ path: 'sId', message: t('settings.wrongTwice') });
  used.add(sId);
  for (const path of numberFields)
    if (sense[path].trim() !== '' && typeof readNumber(sense[path]) !== 'number')
      problems.push({ path, message: wrongNumber() });
  const [min, max] = [readNumber(sense.min), readNumber(sense.max)];
  const isBoth = sense.min.trim() !== '' && sense.max.trim() !== '';
  if (isBoth && typeof min === 'number' && typeof max === 'number' && min > max)
    problems.push({ path: 'min', message: t('settings.wrongOrder') });
  return problems;
}

type SenseFieldsProps = {
  sense: DraftSense;
  /** Its place in the configuration, as a JSON Pointer. */
  path: string;
  problemAt: (path: string) => string;
  /** The page was opened for this sense. */
  isWanted: boolean;
  onChange: (field: SenseField, value: string) => void;
  onRemove: () => void;
};

/** One sense: its name, its unit, and the range of accepted values. */
function SenseFields(props: SenseFieldsProps) {
  const { sense, path, problemAt, isWanted, onChange, onRemove } = props;
  const box = useRef<HTMLFieldSetElement>(null);
  useEffect(() => {
    if (!isWanted || !box.current) return;
    box.current.scrollIntoView({ block: 'center' });
    const field = queryOf('field') === 'unit' ? 'unit' : 'min';
    box.current
      .querySelector<HTMLInputElement>(`input[name=${field}]`)
      ?.focus({ preventScroll: true });
  }, [isWanted]);
  return (
    <fieldset ref={box} class={isWanted ? 'sense sense-wanted' : 'sense'}>
      <legend>{sense.name || sense.sId}</legend>
      <div class="sense-fields">
        {senseFields.map((field) => (
          <Field
            key={field}
            field={field}
            value={sense[field]}
            unit={sense.unit}
            problem={problemAt(`${path}/${field}`)}
            onChange={onChange}
          />
        ))}
      </div>
      {keepsLimits(sense) && (
        <p class="notice" role="status">
          {t('settings.limitsKept', { unit: sense.unit })}
        </p>
      )}
      <button type="button" class="link" onClick={onRemove}>
        {t('settings.removeSense', { name: sense.name || sense.sId })}
      </button>
    </fieldset>
  );
}

/** Whether the unit has changed but the limits have not: nothing converts them. */
function keepsLimits({ own, unit, min, max }: DraftSense): boolean {
  const isOther = own.unit !== undefined && unit !== '' && unit !== own.unit;
  const isKept = readNumber(min) === (own.min ?? '') && readNumber(max) === (own.max ?? '');
  return isOther && isKept && (min !== '' || max !== '');
}

type FieldProps = {
  field: SenseField;
  value: string;
  unit: string;
  problem: string;
  onChange: (field: SenseField, value: string) => void;
};

function Field({ field, value, unit, problem, onChange }: FieldProps) {
  const isRange = (field === 'min' || field === 'max') && unit !== '';
  const label = t(`settings.${field}`);
  const id = useId();
  const isWrong = problem !== '';
  return (
    <div class="field">
      <label for={id}>{isRange ? `${label} (${unit})` : label}</label>
      <input
        id={id}
        name={field}
        value={value}
        autocomplete="off"
        aria-invalid={isWrong}
        aria-describedby={isWrong ? `${id}-problem` : undefined}
        onInput={({ currentTarget }) => onChange(field, currentTarget.value)}
      />
      {isWrong && (
        <span class="field-problem" id={`${id}-problem`}>
          {problem}
        </span>
      )}
    </div>
  );
}

/** What was there right after saving: only what differs from it was judged by the new configuration. */
type Known = { latest: ReadonlyMap<string, number>; rejectedTs: number };

async function readKnown(uuid: string): Promise<Known> {
  const [latest, rejections] = await Promise.all([listLatest([uuid]), listRejections(uuid)]);
  const rejectedTs = Math.max(0, ...rejections.map(({ timestamp }) => timestamp));
  return { latest: new Map(latest.map(({ sId, ts }) => [sId, ts])), rejectedTs };
}

type NextValueProps = { uuid: string; known: Known; senses: ReadonlyMap<string, Sense> };

/** After a change, shows whether the device's next values are stored. */
function NextValue({ uuid, known, senses }: NextValueProps) {
  const { data: latest = [] } = useLatest([uuid]);
  const { data: rejections = [] } = useQuery(
    `rejections/${uuid}`,
    (signal) => listRejections(uuid, signal),
    { everyMs: 2_000 },
  );
  const refused = rejections
    .filter(({ timestamp }) => timestamp > known.rejectedTs)
    .reduce<Rejection | undefined>(newer, undefined);
  // What the cache holds from before is older than what is known.
  const stored = latest.filter(({ sId, ts }) => ts > (known.latest.get(sId) ?? 0));
  const said = stored.map(({ sId, val }) => {
    const sense = senses.get(sId);
    return `${nameOfSense(sId, sense)} ${formatValue(val, sense)}`;
  });
  if (said.length === 0 && refused)
    return (
      <p role="status" class="form-error">
        {t('settings.refused', { why: describeRejection(refused, senses) })}
      </p>
    );
  return (
    <p role="status" class={said.length === 0 ? 'waiting' : 'form-done'}>
      {said.length === 0 ? t('settings.next') : t('settings.stored', { values: said.join(', ') })}
    </p>
  );
}

const newer = (one: Rejection | undefined, other: Rejection): Rejection =>
  one && one.timestamp >= other.timestamp ? one : other;
