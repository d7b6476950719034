import { useState } from 'preact/hooks';
import type { ApiError } from '../../api/request.ts';
import { accountOf } from '../../app/session.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Field, Form, isWrong, type Refusal, Submit, textOf, useForm } from '../../parts/form.tsx';
import { t } from '../../text/t.ts';
import { delays, delayText, type Entry } from './contact-row.tsx';

type DialogProps = {
  /** Null: a new contact. */
  entry: Entry | null;
  known: Entry[];
  hasMail: boolean;
  onClose: () => void;
  onSave: (entry: Entry) => Promise<void>;
};

/** Adds a contact, or changes what it is notified of. The address identifies it and cannot be changed. */
export function ContactDialog({ entry, known, hasMail, onClose, onSave }: DialogProps) {
  const [kind, setKind] = useState<Entry['kind']>(entry?.kind ?? 'email');
  const form = useForm(
    async (values) => {
      const address = entry?.address ?? textOf(values, 'address').trim();
      await onSave({
        kind,
        address,
        labels: labelsIn(textOf(values, 'labels')),
        afterMs: Number(textOf(values, 'afterMs')),
        whenOver: values.has('whenOver'),
        minSeverity: entry?.minSeverity ?? 'info',
        state: 'waiting',
      });
    },
    (error) => explain(error, kind),
  );
  const own = accountOf()?.email ?? '';
  const isOwnNew = !known.some(({ address }) => address.toLowerCase() === own.toLowerCase());
  const title = entry ? t('contacts.edit', { address: entry.address }) : t('contacts.add');
  return (
    <Dialog title={title} onClose={onClose}>
      <Form form={form}>
        {entry === null && (
          <>
            <fieldset class="choices">
              <legend>{t('contacts.kind')}</legend>
              {(['email', 'webhook'] as const).map((each) => (
                <label key={each} class="choice">
                  <input
                    type="radio"
                    name="kind"
                    checked={kind === each}
                    onChange={() => setKind(each)}
                  />
                  <span>{t(`contacts.${each}`)}</span>
                </label>
              ))}
            </fieldset>
            {kind === 'email' && !hasMail && <p class="notice">{t('contacts.noMail')}</p>}
            <Field
              key={kind}
              form={form}
              name="address"
              label={t(kind === 'email' ? 'signIn.email' : 'contacts.url')}
              hint={t(`contacts.${kind}Hint`)}
              input={{
                type: kind === 'email' ? 'email' : 'url',
                defaultValue: kind === 'email' && isOwnNew ? own : '',
                placeholder: kind === 'webhook' ? 'https://' : undefined,
                autocomplete: kind === 'email' ? 'email' : 'url',
                autocapitalize: 'off',
                spellcheck: false,
                required: true,
                maxLength: kind === 'email' ? 254 : 2_048,
              }}
            />
          </>
        )}
        <Suiting form={form} entry={entry} isOpen={entry !== null} />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
          <Submit form={form}>{t(entry ? 'account.save' : 'contacts.addThis')}</Submit>
        </div>
      </Form>
    </Dialog>
  );
}

type SuitingProps = { form: ReturnType<typeof useForm>; entry: Entry | null; isOpen: boolean };

/** What it is notified of, and when. Rarely needed, so it is folded for a new contact. */
function Suiting({ form, entry, isOpen }: SuitingProps) {
  const afterMs = entry?.afterMs ?? 0;
  const offered = [...new Set([...Object.keys(delays).map(Number), afterMs])];
  return (
    <details class="more" open={isOpen}>
      <summary>{t('contacts.more')}</summary>
      <div class="form">
        <label class="field">
          <span>{t('contacts.when')}</span>
          <select name="afterMs" defaultValue={String(afterMs)}>
            {offered.map((each) => (
              <option key={each} value={each} selected={each === afterMs}>
                {t(delayText(each))}
              </option>
            ))}
          </select>
        </label>
        <Field
          form={form}
          name="labels"
          label={t('contacts.labels')}
          hint={t('contacts.labelsHint')}
          input={{ defaultValue: entry?.labels.join(', ') ?? '', autocomplete: 'off' }}
        />
        <label class="check">
          <input type="checkbox" name="whenOver" defaultChecked={entry?.whenOver ?? false} />
          <span>{t('contacts.whenOverLabel')}</span>
        </label>
      </div>
    </details>
  );
}

/** Labels as they are typed, separated by commas. */
export function labelsIn(text: string): string[] {
  return [...new Set(text.split(',').map((each) => each.trim()))].filter(Boolean);
}

function explain(error: ApiError, kind: Entry['kind']): Refusal | null {
  const { problems, status } = error;
  if (status !== 400) return null;
  if (problems.some(({ path }) => path.includes('/labels')))
    return { field: 'labels', text: t('contacts.badLabels') };
  if (!isWrong(error, 'emails') && !isWrong(error, 'webhooks')) return null;
  return {
    field: 'address',
    text: t(kind === 'email' ? 'signIn.badEmail' : 'contacts.badUrl'),
  };
}
