import { useState } from 'preact/hooks';
import { useQuery } from '../../../api/cache.ts';
import {
  getConfiguration,
  listPurposes,
  nameOfSense,
  previewAction,
  sensesOf,
} from '../../../api/devices.ts';
import { ApiError } from '../../../api/request.ts';
import type { ActionPreview, DeviceAction, Purpose, Sense } from '../../../api/types.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Form, Submit, textOf, useForm } from '../../../parts/form.tsx';
import { NumberField, numberOf, wrongNumber } from '../../../parts/number-field.tsx';
import { Answered, Problem } from '../../../parts/panel.tsx';
import { formatTyped } from '../../../text/format.ts';
import { count, t } from '../../../text/t.ts';
import {
  type Checked,
  checkRules,
  isRight,
  LimitFields,
  Nothing,
  SeverityField,
} from '../../watch/limits-form.tsx';
import { limitsIn, type ProfileLimit } from '../../watch/numbers.ts';
import { noRules, purposeOf, rulesIn, severities } from '../../watch/rules.ts';
import { clearSelection, selection, toTarget } from '../fleet-table.tsx';
import { begin } from '../jobs.tsx';
import { type ActionDialogProps, Affected } from './action-dialog.tsx';
import {
  commonOf,
  fieldsOf,
  type Group,
  isLimited,
  type LimitedGroup,
  type LimitField,
  limitsOfGroups,
  marginIn,
  type Numbers,
  wrongIn,
} from './limit-fields.ts';

type Target = Pick<DeviceAction, 'deviceAuthUuids' | 'filter'>;

/** Other limits for many devices: of each profile that they have, and for those that have none. */
export function LimitsDialog({ number, onClose }: ActionDialogProps) {
  // What was selected when it opened.
  const [target] = useState(() => toTarget(selection.value));
  const [place] = useState(() => (opened += 1));
  const query = useQuery(`limits/${place}`, (signal) => readGroups(target, signal));
  return (
    <Dialog
      title={t('act.limits.title', { devices: count('fleet.devices', number) })}
      onClose={onClose}
    >
      <Affected />
      <Answered query={query} lines={4}>
        {(groups) => <Groups groups={groups} target={target} onClose={onClose} />}
      </Answered>
    </Dialog>
  );
}

/** Each time it opens it asks anew. */
let opened = 0;

/** As many profiles as one action takes; the rarest are left out. */
const mostGroups = 20;
/** Only to be told which profiles there are: it is not installed. */
const nothing = { puId: 1, initStId: 1, states: [{ stId: 1, events: [] }] };

/** What the devices have, most of them first. Those without purposes are one group. */
async function readGroups(target: Target, signal: AbortSignal): Promise<Group[]> {
  const { profiles, devices } = await previewAction(
    { action: 'profile', purposes: [nothing] as unknown as Purpose[], ...target },
    signal,
  );
  const groups: Group[] = await Promise.all(
    profiles.slice(0, mostGroups).map(async ({ pId, devices: number }, place) => {
      const bare = { pId, devices: number, purposes: [], senses: new Map(), limits: null };
      const first = devices.find(({ profile }) => profile === place)?.deviceAuthUuid;
      if (first === undefined) return { ...bare, example: '' };
      const found = await getConfiguration(first, signal).catch((error: unknown) => {
        // Removed a moment ago.
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      });
      const example = found?.device.name?.trim() || t('fleet.unnamed');
      if (!found) return { ...bare, example };
      const senses = sensesOf(found);
      const profile = [found.pendingProfile, found.currentProfile].flatMap((each) =>
        'pId' in each && each.pId === pId ? [each] : [],
      )[0];
      if (!profile) return { ...bare, senses, example };
      const { purposes } = profile;
      if (purposes.length === 0) return { ...bare, pId: null, senses, example };
      const isOwn = rulesIn(purposes, [...senses.values()]) !== null;
      return { ...bare, example, purposes, senses, limits: limitsIn(purposes, { isOwn }) };
    }),
  );
  const [none, ...others] = groups.filter(({ pId }) => pId === null);
  if (!none) return groups;
  none.devices += others.reduce((sum, { devices: more }) => sum + more, 0);
  return groups.filter((each) => !others.includes(each));
}

type GroupsProps = {
  groups: readonly Group[];
  target: Target;
  onClose: () => void;
};

/** Which of them change. Those without a profile only if somebody says so, or if there are no others. */
function Groups({ groups: found, target, onClose }: GroupsProps) {
  // What is chosen and typed belongs to these.
  const [groups] = useState(found);
  const first = groups.find(isLimited);
  const [chosen, setChosen] = useState<readonly Group[]>(() =>
    groups.filter((each) => (first ? isLimited(each) : each.pId === null)),
  );
  const [planned, setPlanned] = useState<Planned | null>(null);
  return (
    <>
      {/* It stays, so that what was typed is still there when somebody comes back. */}
      <div hidden={planned !== null}>
        {(groups.length > 1 || !first) && (
          <fieldset class="groups">
            {groups.length > 1 && <legend>{t('limits.differ')}</legend>}
            {groups.map((each, n) => (
              <label key={n} class="check">
                <input
                  type="checkbox"
                  checked={chosen.includes(each)}
                  disabled={!isLimited(each) && each.pId !== null}
                  onChange={({ currentTarget: { checked } }) =>
                    setChosen(
                      groups.filter((one) => (one === each ? checked : chosen.includes(one))),
                    )
                  }
                />
                <span>
                  {sayWho(each)}
                  <span class="fine"> {sayGroup(each, each === first ? undefined : first)}</span>
                </span>
              </label>
            ))}
          </fieldset>
        )}
        <Change groups={chosen} target={target} onPlan={setPlanned} onClose={onClose} />
      </div>
      {planned && (
        <Confirmed {...planned} groups={groups} onBack={() => setPlanned(null)} onClose={onClose} />
      )}
    </>
  );
}

const sayWho = ({ devices, example }: Group) =>
  t('limits.group', { devices: count('fleet.devices', devices), example });

/** The limits of a group; beside another one only what differs from that. */
function sayGroup({ pId, purposes, senses, limits }: Group, beside: Group | undefined): string {
  if (pId === null) return t('limits.noProfile');
  const names = purposes.map(({ name, puId }) => name || t('watch.purpose', { puId })).join(', ');
  if (limits === null) return `${names}: ${t('limits.notHere')}`;
  const others = beside?.limits ?? [];
  const isLike =
    others.length === limits.length &&
    limits.every(({ at, sId, which }, n) => {
      const other = others[n];
      return other?.sId === sId && other.which === which && other.at.join() === at.join();
    });
  const said = isLike ? limits.filter(({ value }, n) => value !== others[n]?.value) : limits;
  // They differ in something else: a name, or how serious they are.
  const shown = said.length === 0 ? limits : said;
  const text = shown.map((limit) => sayLimit(limit, senses, limit.value)).join(', ');
  return beside === undefined || isLike ? text : `${names}: ${text}`;
}

function sayLimit(
  { sId, which }: Pick<ProfileLimit, 'sId' | 'which'>,
  senses: ReadonlyMap<string, Sense>,
  value: number,
): string {
  const sense = senses.get(sId);
  const limit = formatTyped(value, { unit: sense?.unit });
  return `${nameOfSense(sId, sense)} ${t(which === 'isGt' ? 'event.above' : 'event.below', { limit })}`;
}

type Planned = {
  action: DeviceAction;
  preview: ActionPreview;
  /** What devices without a profile get, in words. */
  comes: string;
};

type ChangeProps = {
  groups: readonly Group[];
  target: Target;
  onPlan: (plan: Planned) => void;
  onClose: () => void;
};

type Wrong = { fields: ReadonlyMap<string, string>; bare: Checked | null; text: string };
const nothingWrong: Wrong = { fields: new Map(), bare: null, text: '' };

/** What the devices of these groups get; what comes of it is shown before it is done. */
function Change({ groups, target, onPlan, onClose }: ChangeProps) {
  const limited = groups.filter(isLimited);
  const bare = groups.find(({ pId }) => pId === null);
  const fields = fieldsOf(limited);
  const [shown, setShown] = useState<Numbers>(new Map());
  const [wrong, setWrong] = useState(nothingWrong);
  const purposes = useQuery('purposes', listPurposes);
  const [stored, setStored] = useState('');
  const isSimple = bare !== undefined && stored === '';
  const form = useForm(async (values) => {
    const numbers = numbersIn(values, fields);
    const found = wrongIn(limited, numbers);
    for (const field of fields) {
      const given = numberOf(values, field.key);
      const isMissing = given === undefined && commonOf(field) !== undefined;
      if (given === null || isMissing) found.set(field.key, wrongNumber());
    }
    const senses = [...(bare?.senses.values() ?? [])];
    const checked = isSimple ? checkRules(values, senses) : null;
    const severity = severities.find((each) => each === textOf(values, 'severity'));
    const limits = limitsOfGroups(limited, numbers, severity);
    if (checked) limits.push({ ifPId: null, purposes: [purposeOf(checked.rules, senses)] });
    else if (bare) limits.push({ ifPId: null, purposeUuids: [stored] });
    const isWrong = found.size > 0 || (checked !== null && !isRight(checked));
    const text = limits.length === 0 && !isWrong ? t('limits.same') : '';
    setWrong({ fields: found, bare: checked, text });
    if (isWrong || text !== '') return;
    const action: DeviceAction = { action: 'limits', limits, ...target };
    const name = purposes.data?.find(({ uuid }) => uuid === stored)?.name;
    const comes = checked
      ? sayPurpose(purposeOf(checked.rules, senses))
      : name || t('profile.unnamed');
    onPlan({ action, preview: await previewAction(action), comes });
  });
  return (
    <Form
      form={form}
      onInput={({ currentTarget }) => setShown(numbersIn(new FormData(currentTarget), fields))}
    >
      {fields.map((field) => (
        <Limit
          key={field.key}
          field={field}
          shown={shown}
          problem={wrong.fields.get(field.key) ?? ''}
        />
      ))}
      {(limited.length > 0 || isSimple) && (
        <SeverityField value={limited.length > 0 ? undefined : noRules.severity} />
      )}
      {bare && (
        <>
          <label class="field">
            <span>{t('limits.bare')}</span>
            <select value={stored} onChange={({ currentTarget }) => setStored(currentTarget.value)}>
              <option value="">{t('limits.bare.simple')}</option>
              {purposes.data?.map(({ uuid, name }) => (
                <option key={uuid} value={uuid}>
                  {name || t('profile.unnamed')}
                </option>
              ))}
            </select>
          </label>
          {isSimple && (
            <>
              <p class="fine">{t('limits.bare.hint', { example: bare.example })}</p>
              <Nothing found={wrong.bare} />
              <LimitFields
                senses={[...bare.senses.values()]}
                rules={noRules}
                latest={[]}
                found={wrong.bare}
              />
            </>
          )}
        </>
      )}
      {wrong.text !== '' && (
        <p class="form-error" role="alert">
          {wrong.text}
        </p>
      )}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={onClose}>
          {t('common.cancel')}
        </button>
        {groups.length > 0 && <Submit form={form}>{t('limits.next')}</Submit>}
      </div>
    </Form>
  );
}

const numbersIn = (values: FormData, fields: readonly LimitField[]): Numbers =>
  new Map(
    fields.flatMap(({ key }) => {
      const given = numberOf(values, key);
      return typeof given === 'number' ? [[key, given] as const] : [];
    }),
  );

/** What the events of a purpose are called: they say the limits. */
const sayPurpose = ({ states }: Purpose): string =>
  states.flatMap(({ events }) => events.map(({ name }) => name)).join(', ');

type LimitProps = { field: LimitField; shown: Numbers; problem: string };

/** One limit of all groups that have it. */
function Limit({ field, shown, problem }: LimitProps) {
  const { key, sense, of } = field;
  const [first] = of;
  if (!first) return null;
  const { sId, which } = first.limit;
  const common = commonOf(field);
  const margin = marginIn(field, shown);
  const name = nameOfSense(sId, sense);
  const same = (say: (one: ProfileLimit) => string) => {
    const texts = new Set(of.map(({ limit }) => say(limit)));
    return texts.size === 1 ? say(first.limit) : '';
  };
  const number = (value: number) => formatTyped(value, { unit: sense?.unit });
  return (
    <fieldset class="watch-sense">
      <legend>{same((limit) => limit.name) || name}</legend>
      <NumberField
        name={key}
        label={t(which === 'isGt' ? 'watch.isAbove' : 'watch.isBelow', { name })}
        unit={sense?.unit}
        value={common}
        problem={problem}
      />
      <p class="fine">
        {common === undefined && `${t('limits.now', { values: sayValues(of, number) })} `}
        {same(({ from, to, isAlone }) =>
          to === null
            ? isAlone
              ? ''
              : t('watch.inState', { from })
            : t('watch.moves', { from, to }),
        )}
        {margin !== null && ` ${t('watch.margin', { value: number(margin) })}`}
      </p>
    </fieldset>
  );
}

/** How many devices have which number. */
function sayValues(of: LimitField['of'], number: (value: number) => string): string {
  const values = Map.groupBy(of, ({ limit }) => limit.value);
  return [...values]
    .map(([value, those]) => {
      const devices = those.reduce((sum, { group }) => sum + group.devices, 0);
      return `${number(value)} (${count('fleet.devices', devices)})`;
    })
    .join(', ');
}

type ConfirmedProps = Planned & {
  groups: readonly Group[];
  onBack: () => void;
  onClose: () => void;
};

/** What changes, on how many devices, and how many stay as they are. */
function Confirmed({ action, preview, comes, groups, onBack, onClose }: ConfirmedProps) {
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const { devices } = preview;
  const change = devices.filter(({ outcome }) => outcome === 'install').length;
  const keep = preview.of - change;
  const send = async () => {
    if (isSending) return;
    setSending(true);
    setError(null);
    try {
      await begin(action);
      onClose();
      clearSelection();
    } catch (thrown) {
      setError(thrown);
      setSending(false);
    }
  };
  const changing = groups.filter(({ pId }) => action.limits?.some(({ ifPId }) => ifPId === pId));
  return (
    <div class="form">
      <ul class="limit-changes">
        {changing.map((group, place) => (
          <li key={place}>
            {sayWho(group)}
            <ul>
              {(isLimited(group) ? sayChanges(group, preview) : [comes]).map((text) => (
                <li key={text}>{text}</li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      <p>
        {count('limits.change', change)} {keep > 0 && count('limits.keep', keep)}
      </p>
      <p class="fine">{t('limits.hint')}</p>
      {error !== null && <Problem error={error} />}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={onBack}>
          {t('limits.back')}
        </button>
        <button
          type="button"
          class="button button-main"
          disabled={isSending || change === 0}
          onClick={() => void send()}
        >
          {t('act.limits.do')}
        </button>
      </div>
    </div>
  );
}

/** What changes in a profile, each thing once: numbers, and how serious its alarms are. */
function sayChanges({ pId, senses }: LimitedGroup, { differences }: ActionPreview): string[] {
  const said = differences
    .filter(({ ifPId }) => ifPId === pId)
    .flatMap(({ sId = '', limit, from, to, severity }) => {
      if (severity) {
        const [then, now] = [t(`severity.${severity.from}`), t(`severity.${severity.to}`)];
        return [t('limits.severity', { from: then, to: now })];
      }
      if (from === undefined || to === undefined) return [];
      const which = limit === 'isLt' ? 'isLt' : 'isGt';
      const then = formatTyped(to, { unit: senses.get(sId)?.unit });
      return [`${sayLimit({ sId, which }, senses, from)} → ${then}`];
    });
  return [...new Set(said)];
}
